//! The automaton over a segment's trie: what an element leads to. This is the truth; `dfa`
//! remembers it.
//!
//! A trie node is *bound* by an element if the path to the node selects the element. What an
//! element's children can bind follows from two sets: the nodes the element binds, for their
//! children by `/`, and the nodes that it or an ancestor binds, for their children by `//`.

use crate::query::ast::Axis;
use crate::segment::format::columns::View;
use crate::segment::format::trie::{ANY, NONE};
use crate::util::prefetch::prefetch;

/// The labels a name has: its own, and that of its namespace. `NONE` where no query mentions it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameLabels {
    pub name: u32,
    pub namespace: u32,
}

impl NameLabels {
    /// A label that tells apart what names lead to: a name has one namespace, so its own is enough, and
    /// all that no query mentions are alike.
    #[inline]
    pub fn distinct(self) -> u32 {
        if self.name != NONE { self.name } else { self.namespace }
    }
}

impl View<'_> {
    #[inline]
    pub fn has_children(&self, node: u32) -> bool {
        self.node_children[node as usize] < self.node_descendants[node as usize]
    }

    #[inline]
    pub fn has_descendants(&self, node: u32) -> bool {
        self.node_descendants[node as usize] < self.node_children[node as usize + 1]
    }

    /// The child of a node by an axis and a label.
    pub fn child(&self, node: u32, axis: Axis, label: u32) -> Option<u32> {
        let (child, descendant) = (self.node_children[node as usize], self.node_descendants[node as usize]);
        let (start, end) = match axis {
            Axis::Child => (child, descendant),
            Axis::Descendant => (descendant, self.node_children[node as usize + 1]),
        };
        let place = self.node_label[start as usize..end as usize].binary_search(&label).ok()?;
        Some(start + place as u32)
    }

    /// Appends the nodes bound by a child called so of an element that binds `node`.
    #[inline]
    pub fn push_children(&self, node: u32, labels: NameLabels, out: &mut Vec<u32>) {
        let (start, end) = (self.node_children[node as usize], self.node_descendants[node as usize]);
        self.push_matching(start, end, labels, out);
    }

    /// Appends the nodes bound by a descendant called so of an element that binds `node`.
    #[inline]
    pub fn push_descendants(&self, node: u32, labels: NameLabels, out: &mut Vec<u32>) {
        let (start, end) = (self.node_descendants[node as usize], self.node_children[node as usize + 1]);
        self.push_matching(start, end, labels, out);
    }

    #[inline]
    fn push_matching(&self, start: u32, end: u32, labels: NameLabels, out: &mut Vec<u32>) {
        let mut start = start as usize;
        let end = end as usize;
        if start < end && self.node_label[start] == ANY {
            out.push(start as u32);
            start += 1;
        }
        for label in [labels.name, labels.namespace] {
            if label != NONE
                && let Ok(at) = self.node_label[start..end].binary_search(&label)
            {
                out.push((start + at) as u32);
            }
        }
    }

    /// Announces that the children of a node will be asked for.
    #[inline]
    pub fn prefetch_children(&self, node: u32) {
        prefetch(self.node_children, node as usize);
        prefetch(self.node_descendants, node as usize);
    }

    /// Announces that what is found at a node will be asked for.
    #[inline]
    pub fn prefetch_found(&self, node: u32) {
        prefetch(self.node_condition, node as usize);
        prefetch(self.node_anchor, node as usize);
        prefetch(self.node_label, node as usize);
        prefetch(self.node_entries, node as usize);
    }

    /// The entries of a node.
    #[inline]
    pub fn entries(&self, node: u32) -> std::ops::Range<usize> {
        if self.node_entries.is_empty() {
            return 0..0;
        }
        self.node_entries[node as usize] as usize..self.node_entries[node as usize + 1] as usize
    }

    /// The conditions of an entry's bounds that a number passes.
    #[inline]
    pub fn passed_bounds(&self, entry: usize, number: f64) -> impl Iterator<Item = u32> {
        let bounds = self.entry_bounds[entry] as usize..self.entry_bounds[entry + 1] as usize;
        bounds.filter_map(move |at| {
            let side = if self.bound_side[at] == 0 { number } else { -number };
            (side > self.bound[at]).then_some(self.bound_condition[at])
        })
    }

    /// Appends the numbers at which what an entry's bounds say changes.
    pub fn turns(&self, entry: usize, out: &mut Vec<f64>) {
        let bounds = self.entry_bounds[entry] as usize..self.entry_bounds[entry + 1] as usize;
        out.extend(bounds.map(|at| if self.bound_side[at] == 0 { self.bound[at] } else { -self.bound[at] }));
    }

    #[inline]
    pub fn has_bounds(&self, entry: usize) -> bool {
        self.entry_bounds[entry] < self.entry_bounds[entry + 1]
    }

    #[inline]
    pub fn anchor(&self, node: u32) -> u32 {
        if self.node_anchor.is_empty() { NONE } else { self.node_anchor[node as usize] }
    }
}
