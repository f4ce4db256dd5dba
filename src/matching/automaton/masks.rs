//! Lists of bit masks: sets of conditions or anchors, in one pool.

use crate::util::bitset::Mask;
use crate::util::prefetch::prefetch;

/// A sparse set of bits that becomes a list. It lists the words that are not zero, so that storing it takes time
/// in proportion to them and not to the number of possible bits.
pub struct MaskScratch {
    words: Vec<u64>,
    touched: Vec<u32>,
}

impl MaskScratch {
    pub fn new(count: usize) -> MaskScratch {
        MaskScratch { words: vec![0; count.div_ceil(64)], touched: Vec::new() }
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

/// A list of masks: the place of its head in a `MaskPool`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct MaskList(u32);

impl MaskList {
    /// The list without masks, which is in every pool.
    pub const EMPTY: MaskList = MaskList(0);
    /// No list: the answer is not known.
    pub const UNKNOWN: MaskList = MaskList(u32::MAX);

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self == MaskList::EMPTY
    }
}

/// Mask lists, one after the other. The head of a list has the form of a mask, with the tag and the length of the
/// list, and precedes its masks: usually all are in one cache line.
pub struct MaskPool {
    masks: Vec<Mask>,
}

impl Default for MaskPool {
    fn default() -> MaskPool {
        MaskPool { masks: vec![Mask::new(0, 0)] }
    }
}

impl MaskPool {
    #[inline(always)]
    pub fn get(&self, list: MaskList) -> &[Mask] {
        self.range(self.head(list).1)
    }

    /// The tag of a list, and the range of its masks: start and length.
    #[inline(always)]
    pub fn head(&self, list: MaskList) -> (u32, (u32, u32)) {
        let head = self.masks[list.0 as usize];
        (head.word, (list.0 + 1, head.bits() as u32))
    }

    /// Prefetches a list.
    #[inline(always)]
    pub fn prefetch(&self, list: MaskList) {
        prefetch(&self.masks, list.0 as usize);
    }

    #[inline(always)]
    pub fn range(&self, (start, len): (u32, u32)) -> &[Mask] {
        &self.masks[start as usize..][..len as usize]
    }

    /// Stores the bits of `scratch`, and clears it.
    pub fn store(&mut self, scratch: &mut MaskScratch) -> MaskList {
        if scratch.touched.is_empty() {
            return MaskList::EMPTY;
        }
        let head = self.masks.len() as u32;
        self.masks.push(Mask::new(0, scratch.touched.len() as u64));
        scratch.touched.sort_unstable();
        self.masks.extend(scratch.touched.drain(..).map(|word| {
            let bits = std::mem::take(&mut scratch.words[word as usize]);
            Mask::new(word, bits)
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

    /// Drops all lists but the empty one.
    pub fn clear(&mut self) {
        self.masks.truncate(1);
    }
}
