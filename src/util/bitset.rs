//! A bitmap that is cleared and walked in time proportional to what was set.

/// Bits with a summary: one bit per word that was touched.
#[derive(Default)]
pub struct Bits {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Bits {
    pub fn new(count: usize) -> Bits {
        let words = count.div_ceil(64);
        Bits { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    #[inline(always)]
    pub fn get(&self, bit: u32) -> bool {
        self.words[bit as usize / 64] >> (bit % 64) & 1 != 0
    }

    /// All words.
    #[inline(always)]
    pub fn all(&self) -> &[u64] {
        &self.words
    }

    /// The word at a place.
    #[inline(always)]
    pub fn word(&self, word: u32) -> u64 {
        self.words[word as usize]
    }

    #[inline(always)]
    pub fn set(&mut self, bit: u32) {
        self.words[bit as usize / 64] |= 1 << (bit % 64);
        self.touch(bit / 64);
    }

    /// Sets all bits of a list.
    #[inline]
    pub fn or(&mut self, masks: &[Mask]) {
        for mask in masks {
            self.words[mask.word as usize] |= mask.bits();
            self.touch(mask.word);
        }
    }

    /// Sets all bits of a list, and in `twice` those that were set before.
    #[inline]
    pub fn count(&mut self, twice: &mut Bits, masks: &[Mask]) {
        for mask in masks {
            let before = &mut self.words[mask.word as usize];
            twice.words[mask.word as usize] |= *before & mask.bits();
            *before |= mask.bits();
            self.touch(mask.word);
            twice.touch(mask.word);
        }
    }

    #[inline(always)]
    fn touch(&mut self, word: u32) {
        self.summary[word as usize / 64] |= 1 << (word % 64);
    }

    pub fn clear(&mut self) {
        for (at, summary) in self.summary.iter_mut().enumerate() {
            let mut rest = std::mem::take(summary);
            while rest != 0 {
                self.words[at * 64 + rest.trailing_zeros() as usize] = 0;
                rest &= rest - 1;
            }
        }
    }

    /// The words that are not zero, with their places.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        self.summary.iter().enumerate().flat_map(move |(at, &summary)| {
            ones(summary).map(move |bit| {
                let word = at * 64 + bit as usize;
                (word, self.words[word])
            })
        })
    }

    /// The bits that are set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words().flat_map(|(word, bits)| ones(bits).map(move |bit| word as u32 * 64 + bit))
    }
}

/// The places of the bits of a word, ascending.
#[inline(always)]
pub fn ones(word: u64) -> impl Iterator<Item = u32> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let bit = rest.trailing_zeros();
        rest &= rest - 1;
        Some(bit)
    })
}

/// A word with its lowest bits set, so many.
#[inline(always)]
pub fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Sets a bit of a bitmap.
pub fn set_bit(words: &mut [u64], bit: usize) {
    words[bit / 64] |= 1 << (bit % 64);
}

/// The places of the bits of a bitmap, ascending.
pub fn set_bits(words: &[u64]) -> impl Iterator<Item = u32> {
    words.iter().enumerate().flat_map(|(word, &bits)| ones(bits).map(move |bit| word as u32 * 64 + bit))
}

/// Bits of one word. In halves, because so it takes twelve bytes and not sixteen.
#[derive(Clone, Copy)]
pub struct Mask {
    pub word: u32,
    low: u32,
    high: u32,
}

impl Mask {
    pub fn new(word: u32, bits: u64) -> Mask {
        Mask { word, low: bits as u32, high: (bits >> 32) as u32 }
    }

    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.low as u64 | (self.high as u64) << 32
    }
}
