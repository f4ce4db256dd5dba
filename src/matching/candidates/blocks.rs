//! Row blocks: copies of simple rows, stored contiguously if their access tests hold together.
//!
//! Conditions hold in groups: all conditions of an accept set, all conditions that a class of values satisfies. Each has
//! few rows, and in the segment they are far apart. A block has the rows of a whole group, so that testing them is one
//! sequential read.

use crate::ids::ConditionId;
use crate::segment::format::columns::View;
use crate::segment::rows::simple::{Narrow, Wide};
use crate::util::bitset::ones;
use crate::util::prefetch::prefetch;

/// Two positives and two anchors. Only blocks have these: most wide rows need no more.
pub type Middle = [u32; 6];

/// Ranges of the pools of rows.
#[derive(Clone, Copy, Default)]
pub struct RowBlock {
    pub narrow: (u32, u32),
    pub middle: (u32, u32),
    pub wide: (u32, u32),
}

impl RowBlock {
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        (self.narrow.0 == self.narrow.1) & (self.middle.0 == self.middle.1) & (self.wide.0 == self.wide.1)
    }
}

#[derive(Default)]
pub struct Blocks {
    pub narrow: Vec<Narrow>,
    pub middle: Vec<Middle>,
    pub wide: Vec<Wide>,
}

impl Blocks {
    /// Copies the rows filed under those of the conditions that have few rows; conditions are given as words.
    pub fn store(&mut self, view: &View<'_>, conditions: impl Iterator<Item = (usize, u64)>) -> RowBlock {
        let before = self.ends();
        if !view.copied.is_empty() {
            for (word, bits) in conditions {
                for bit in ones(bits & view.copied[word]) {
                    let condition = ConditionId::from(word * 64 + bit as usize);
                    self.narrow.extend_from_slice(view.narrow_rows(condition));
                    view.wide_rows(condition).iter().for_each(|row| self.push_wide(view, row));
                }
            }
        }
        let after = self.ends();
        RowBlock { narrow: (before[0], after[0]), middle: (before[1], after[1]), wide: (before[2], after[2]) }
    }

    /// Prefetches the rows of a block.
    #[inline]
    pub fn prefetch(&self, block: RowBlock) {
        prefetch(&self.narrow, block.narrow.0 as usize);
        prefetch(&self.middle, block.middle.0 as usize);
        prefetch(&self.wide, block.wide.0 as usize);
    }

    fn ends(&self) -> [u32; 3] {
        [self.narrow.len() as u32, self.middle.len() as u32, self.wide.len() as u32]
    }

    /// Copies a wide row, as a middle one if its last fields are unused.
    fn push_wide(&mut self, view: &View<'_>, row: &Wide) {
        let [a, b, c, d, e, f, access, query] = *row;
        if c as usize == view.conditions() && f as usize == view.anchors() {
            self.middle.push([a, b, d, e, access, query]);
        } else {
            self.wide.push(*row);
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.narrow.as_slice())
            + size_of_val(self.middle.as_slice())
            + size_of_val(self.wide.as_slice())
    }

    pub fn clear(&mut self) {
        self.narrow.clear();
        self.middle.clear();
        self.wide.clear();
    }
}
