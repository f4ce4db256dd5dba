//! A bitmap that is cleared and walked in time proportional to what was set.

use crate::util::prefetch::bring;

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
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.low as u64 | (self.high as u64) << 32
    }
}

/// Bits on their way to a list. They are few, so that a list of their words is enough of a summary,
/// and the time does not grow with how many there could be.
pub struct Scratch {
    words: Vec<u64>,
    touched: Vec<u32>,
}

impl Scratch {
    pub fn new(count: usize) -> Scratch {
        Scratch { words: vec![0; count.div_ceil(64)], touched: Vec::new() }
    }

    #[inline]
    pub fn set(&mut self, bit: u32) {
        let word = &mut self.words[bit as usize / 64];
        if *word == 0 {
            self.touched.push(bit / 64);
        }
        *word |= 1 << (bit % 64);
    }
}

/// A list of masks in a `MaskPool`: the place of its head.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct MaskList(u32);

impl MaskList {
    /// The list without masks, which is in every pool.
    pub const EMPTY: MaskList = MaskList(0);
    /// No list: it is not known yet.
    pub const UNKNOWN: MaskList = MaskList(u32::MAX);

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self == MaskList::EMPTY
    }
}

/// Mask lists, side by side. Each has a head in the form of a mask, with its tag and its length, so
/// that whoever has waited for the head has waited for the masks too.
pub struct MaskPool {
    masks: Vec<Mask>,
}

impl Default for MaskPool {
    fn default() -> MaskPool {
        MaskPool { masks: vec![Mask { word: 0, low: 0, high: 0 }] }
    }
}

impl MaskPool {
    #[inline(always)]
    pub fn get(&self, list: MaskList) -> &[Mask] {
        self.stretch(self.head(list).1)
    }

    /// The tag of a list, and where its masks are: start and length.
    #[inline(always)]
    pub fn head(&self, list: MaskList) -> (u32, (u32, u32)) {
        let head = self.masks[list.0 as usize];
        (head.word, (list.0 + 1, head.low))
    }

    /// Announces that a list will be asked for.
    #[inline(always)]
    pub fn bring(&self, list: MaskList) {
        bring(&self.masks, list.0 as usize);
    }

    #[inline(always)]
    pub fn stretch(&self, (start, len): (u32, u32)) -> &[Mask] {
        &self.masks[start as usize..][..len as usize]
    }

    /// Stores the bits that `scratch` holds, and clears it.
    pub fn store(&mut self, scratch: &mut Scratch) -> MaskList {
        if scratch.touched.is_empty() {
            return MaskList::EMPTY;
        }
        let head = self.masks.len() as u32;
        self.masks.push(Mask { word: 0, low: scratch.touched.len() as u32, high: 0 });
        scratch.touched.sort_unstable();
        self.masks.extend(scratch.touched.drain(..).map(|word| {
            let bits = std::mem::take(&mut scratch.words[word as usize]);
            Mask { word, low: bits as u32, high: (bits >> 32) as u32 }
        }));
        MaskList(head)
    }

    /// Tags a list that has masks.
    pub fn tag(&mut self, list: MaskList, tag: u32) {
        self.masks[list.0 as usize].word = tag;
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.masks.as_slice())
    }

    /// Forgets all lists but the empty one.
    pub fn clear(&mut self) {
        self.masks.truncate(1);
    }
}
