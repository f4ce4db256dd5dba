//! Lists of bit masks: which conditions or anchors hold, stored compactly side by side.

use crate::util::bitset::Mask;
use crate::util::prefetch::prefetch;

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
        MaskPool { masks: vec![Mask::new(0, 0)] }
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
        (head.word, (list.0 + 1, head.bits() as u32))
    }

    /// Announces that a list will be asked for.
    #[inline(always)]
    pub fn prefetch(&self, list: MaskList) {
        prefetch(&self.masks, list.0 as usize);
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

    /// Forgets all lists but the empty one.
    pub fn clear(&mut self) {
        self.masks.truncate(1);
    }
}
