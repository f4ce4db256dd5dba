//! Entries: the subjects that queries test below a trie node. A subject is an attribute, given by the label
//! of its name test, or one of the `SUBJECT_…` below.
//!
//! For example `//a[@x = 1][. < 7]` has two entries at the node of `//a`: the attribute `x`, compared with the
//! number 1 for equality, and the string-value, whose numbers are compared with a bound.

use std::ops::Range;

use super::columns::View;

/// Subjects that are not attributes; labels are far below.
pub const SUBJECT_TEXT: u32 = u32::MAX - 1;
pub const SUBJECT_VALUE: u32 = u32::MAX - 2;
/// The position among siblings of the same name, or among all sibling elements.
pub const SUBJECT_POSITION: u32 = u32::MAX - 3;
pub const SUBJECT_POSITION_ANY: u32 = u32::MAX - 4;

/// Flags of entries: compared for equality with texts, with numbers.
pub const ENTRY_TEXT: u8 = 1;
pub const ENTRY_NUMBER: u8 = 2;

impl View<'_> {
    /// The entries of a node.
    #[inline]
    pub fn entries(&self, node: u32) -> Range<usize> {
        if self.node_entries.is_empty() {
            return 0..0;
        }
        self.node_entries[node as usize] as usize..self.node_entries[node as usize + 1] as usize
    }

    /// The bounds of an entry that are conditions.
    #[inline]
    pub fn bounds(&self, entry: usize) -> Range<usize> {
        self.entry_bounds[entry] as usize..self.entry_bounds[entry + 1] as usize
    }

    /// The conditions of an entry's bounds that a number passes.
    #[inline]
    pub fn passed_bounds(&self, entry: usize, number: f64) -> impl Iterator<Item = u32> {
        self.bounds(entry).filter_map(move |at| {
            let side = if self.bound_side[at] == 0 { number } else { -number };
            (side > self.bound[at]).then_some(self.bound_condition[at])
        })
    }

    /// Appends the numbers at which the outcome of an entry's bounds changes.
    pub fn push_breakpoints(&self, entry: usize, out: &mut Vec<f64>) {
        out.extend(
            self.bounds(entry)
                .map(|at| if self.bound_side[at] == 0 { self.bound[at] } else { -self.bound[at] }),
        );
    }
}
