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
        let word = bit as usize / 64;
        self.words[word] |= 1 << (bit % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Sets all bits of a list.
    #[inline]
    pub fn or(&mut self, masks: Masks<'_>) {
        for (&word, &mask) in masks.words.iter().zip(masks.masks) {
            self.words[word as usize] |= mask;
        }
        self.or_summary(masks);
    }

    #[inline]
    fn or_summary(&mut self, masks: Masks<'_>) {
        for (&word, &mask) in masks.summary_words.iter().zip(masks.summary_masks) {
            self.summary[word as usize] |= mask;
        }
    }

    /// Sets all bits of a list, and in `twice` those that were set before.
    #[inline]
    pub fn count(&mut self, twice: &mut Bits, masks: Masks<'_>) {
        for (&word, &mask) in masks.words.iter().zip(masks.masks) {
            let before = &mut self.words[word as usize];
            twice.words[word as usize] |= *before & mask;
            *before |= mask;
        }
        self.or_summary(masks);
        twice.or_summary(masks);
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

/// The places of the bits of a bitmap, ascending.
pub fn set_bits(words: &[u64]) -> impl Iterator<Item = u32> {
    words.iter().enumerate().flat_map(|(word, &bits)| ones(bits).map(move |bit| word as u32 * 64 + bit))
}

/// Bits to set, as words and masks, with the summary they lead to.
#[derive(Clone, Copy)]
pub struct Masks<'a> {
    pub words: &'a [u32],
    pub masks: &'a [u64],
    pub summary_words: &'a [u32],
    pub summary_masks: &'a [u64],
}

/// A list of masks in a `MaskPool`.
#[derive(Clone, Copy, Default)]
pub struct MaskList {
    start: u32,
    words: u32,
    summary: u32,
}

impl MaskList {
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.words == 0
    }
}

/// Mask lists, side by side.
#[derive(Default)]
pub struct MaskPool {
    words: Vec<u32>,
    masks: Vec<u64>,
}

impl MaskPool {
    #[inline(always)]
    pub fn get(&self, list: MaskList) -> Masks<'_> {
        let start = list.start as usize;
        let middle = start + list.words as usize;
        let end = middle + list.summary as usize;
        Masks {
            words: &self.words[start..middle],
            masks: &self.masks[start..middle],
            summary_words: &self.words[middle..end],
            summary_masks: &self.masks[middle..end],
        }
    }

    /// Stores the bits that `scratch` holds, and clears it.
    pub fn store(&mut self, scratch: &mut Bits) -> MaskList {
        let start = self.words.len();
        for (at, summary) in scratch.summary.iter().enumerate() {
            for bit in ones(*summary) {
                let word = at * 64 + bit as usize;
                self.words.push(word as u32);
                self.masks.push(scratch.words[word]);
            }
        }
        let middle = self.words.len();
        for (at, &summary) in scratch.summary.iter().enumerate() {
            if summary != 0 {
                self.words.push(at as u32);
                self.masks.push(summary);
            }
        }
        scratch.clear();
        MaskList {
            start: start as u32,
            words: (middle - start) as u32,
            summary: (self.words.len() - middle) as u32,
        }
    }

    pub fn bytes(&self) -> usize {
        self.words.len() * 4 + self.masks.len() * 8
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.masks.clear();
    }
}
