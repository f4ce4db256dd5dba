//! Entries: the subjects that queries test below a trie node. A subject is an attribute, given by the label
//! of its name test, or one of the constants of `SubjectId`.
//!
//! For example `//a[@x = 1][. < 7]` has two entries at the node of `//a`: the attribute `x`, compared with the
//! number 1 for equality, and the string-value, whose numbers are compared with a bound.

use std::ops::Range;

use super::columns::View;
use crate::ids::{ConditionId, LabelId, SubjectId, TrieNodeId};
use crate::query::ast::NameTest;

/// Subjects that are not attributes follow those that are, whose numbers are those of labels.
impl SubjectId {
    pub const TEXT: SubjectId = SubjectId(u32::MAX - 1);
    pub const VALUE: SubjectId = SubjectId(u32::MAX - 2);
    /// The position among siblings of the same name.
    pub const POSITION: SubjectId = SubjectId(u32::MAX - 3);
    /// The position among all sibling elements.
    pub const POSITION_ANY: SubjectId = SubjectId(u32::MAX - 4);
    /// The position among siblings of the same local name, and among those of the same namespace.
    pub const POSITION_LOCAL: SubjectId = SubjectId(u32::MAX - 5);
    pub const POSITION_NAMESPACE: SubjectId = SubjectId(u32::MAX - 6);

    /// The position among siblings that pass a name test.
    pub fn position(test: &NameTest) -> SubjectId {
        match test {
            NameTest::Any => SubjectId::POSITION_ANY,
            NameTest::AnyIn(_) => SubjectId::POSITION_NAMESPACE,
            NameTest::Local(_) => SubjectId::POSITION_LOCAL,
            NameTest::Name(_) => SubjectId::POSITION,
        }
    }

    /// The attributes with a label.
    #[inline(always)]
    pub fn attribute(label: LabelId) -> SubjectId {
        SubjectId(label.0)
    }

    #[inline(always)]
    pub fn is_attribute(self) -> bool {
        self < SubjectId::POSITION_NAMESPACE
    }
}

/// Flags of entries: compared for equality with texts, with numbers, with texts after their white space is normalised.
pub const ENTRY_TEXT: u8 = 1;
pub const ENTRY_NUMBER: u8 = 2;
pub const ENTRY_NORMALIZED: u8 = 4;

impl View<'_> {
    /// The entries of a node.
    #[inline]
    pub fn entries(&self, node: TrieNodeId) -> Range<usize> {
        if self.node_entries.is_empty() {
            return 0..0;
        }
        within(&self.node_entries[node.index()..][..2], self.entry_subject.len())
    }

    /// The bounds of an entry that are conditions.
    #[inline]
    pub fn bounds(&self, entry: usize) -> Range<usize> {
        within(&self.entry_bounds[entry..][..2], self.bound.len())
    }

    /// The conditions of an entry's bounds that a number passes.
    #[inline]
    pub fn passed_bounds(&self, entry: usize, number: f64) -> impl Iterator<Item = ConditionId> {
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

/// The range between two ends. Panics if it is longer than the column: a buffer for it could exhaust memory.
#[inline]
fn within(ends: &[u32], column: usize) -> Range<usize> {
    let (start, end) = (ends[0] as usize, ends[1] as usize);
    assert!(end <= column, "the segment is damaged");
    start..end
}
