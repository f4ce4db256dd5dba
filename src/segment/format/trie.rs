//! The trie of all linear paths, in which paths share their prefixes: the automaton of a segment.
//!
//! A trie node is *bound* by an element if the path to the node selects the element. Which nodes a child of an
//! element binds follows from two sets: the nodes that the element binds, for their children by `/`, and the
//! nodes that it or an ancestor binds, for their children by `//`.
//!
//! ```text
//! queries  /a/b  /a//c  //c        message <a><b><c/></b></a>
//! trie     root ─/a─ 1 ─/b─ 2      a binds 1, b binds 2
//!            │       └─//c─ 3      c binds 3, because a above it binds 1,
//!            └─//c─ 4              and 4, because the document node binds the root
//! ```

use rustc_hash::FxHashMap;

use super::NONE;
use super::columns::{Columns, View};
use super::labels::ANY;
use crate::query::ast::Axis;
use crate::util::prefetch::prefetch;

/// A node while the trie is built.
#[derive(Clone, Copy)]
struct NewNode {
    parent: u32,
    axis: Axis,
    label: u32,
}

/// The trie while a segment is built.
#[derive(Default)]
pub struct Trie {
    nodes: Vec<NewNode>,
    edges: FxHashMap<(u32, u32), u32>,
}

impl Trie {
    /// Adds a root: one per tenant, before any other node.
    pub fn root(&mut self) -> u32 {
        self.nodes.push(NewNode { parent: NONE, axis: Axis::Child, label: ANY });
        self.nodes.len() as u32 - 1
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The child of a node by an axis and a label, added if it is new.
    pub fn child(&mut self, parent: u32, axis: Axis, label: u32) -> u32 {
        let key = (parent, label << 1 | (axis == Axis::Descendant) as u32);
        let nodes = &mut self.nodes;
        *self.edges.entry(key).or_insert_with(|| {
            nodes.push(NewNode { parent, axis, label });
            nodes.len() as u32 - 1
        })
    }

    pub fn label_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].label
    }

    /// The last labels of the path to a node, leaf first, packed so that numeric order is the order
    /// of reversed paths. Paths with the same end are bound by the same elements.
    pub fn reversed(&self, node: u32) -> u128 {
        let mut key = 0;
        let mut at = node;
        for _ in 0..7 {
            let (part, next) = match self.nodes.get(at as usize) {
                Some(node) => {
                    let deep = (node.axis == Axis::Descendant) as u128;
                    ((node.label as u128 & 0x1_FFFF) << 1 | deep, node.parent)
                }
                None => (0, NONE),
            };
            key = key << 18 | part;
            at = next;
        }
        key
    }

    /// Writes the trie breadth first and returns the new number of each node. Roots keep their numbers.
    pub fn write(self, columns: &mut Columns) -> Vec<u32> {
        let count = self.nodes.len();
        // Children of each node, by counting sort.
        let mut starts = vec![0u32; count + 1];
        let mut order = Vec::with_capacity(count);
        for (id, node) in self.nodes.iter().enumerate() {
            match node.parent {
                NONE => order.push(id as u32),
                parent => starts[parent as usize + 1] += 1,
            }
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut children = vec![0u32; starts[count] as usize];
        let mut fill = starts.clone();
        for (id, node) in self.nodes.iter().enumerate() {
            if node.parent != NONE {
                let at = &mut fill[node.parent as usize];
                children[*at as usize] = id as u32;
                *at += 1;
            }
        }
        let key = |id: &u32| {
            let node = &self.nodes[*id as usize];
            (node.axis, node.label)
        };
        let mut renumbered = vec![NONE; count];
        let mut next = 0;
        columns.node_label.reserve(count);
        columns.node_children.reserve(count + 1);
        columns.node_descendants.reserve(count);
        while next < order.len() {
            let id = order[next];
            renumbered[id as usize] = next as u32;
            columns.node_label.push(self.nodes[id as usize].label);
            let own = &mut children[starts[id as usize] as usize..starts[id as usize + 1] as usize];
            own.sort_unstable_by_key(key);
            let by_child = own.partition_point(|id| self.nodes[*id as usize].axis == Axis::Child);
            columns.node_children.push(order.len() as u32);
            columns.node_descendants.push((order.len() + by_child) as u32);
            order.extend_from_slice(own);
            next += 1;
        }
        columns.node_children.push(order.len() as u32);
        renumbered
    }
}

/// The labels of a name: its own, and that of its namespace. `NONE` where no query mentions it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameLabels {
    pub name: u32,
    pub namespace: u32,
}

impl NameLabels {
    /// A key for the transitions by a name. A name has one namespace, so its own label is enough; all names that
    /// no query mentions share a key.
    #[inline]
    pub fn transition_key(self) -> u32 {
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

    /// Appends the nodes that a child with this name binds, of an element that binds `node`.
    #[inline]
    pub fn push_children(&self, node: u32, labels: NameLabels, out: &mut Vec<u32>) {
        let (start, end) = (self.node_children[node as usize], self.node_descendants[node as usize]);
        self.push_matching(start, end, labels, out);
    }

    /// Appends the nodes that a descendant with this name binds, of an element that binds `node`.
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

    /// Prefetches what `push_children` and `push_descendants` read.
    #[inline]
    pub fn prefetch_children(&self, node: u32) {
        prefetch(self.node_children, node as usize);
        prefetch(self.node_descendants, node as usize);
    }

    /// Prefetches the condition, the anchor, the label and the entries of a node.
    #[inline]
    pub fn prefetch_node(&self, node: u32) {
        prefetch(self.node_condition, node as usize);
        prefetch(self.node_anchor, node as usize);
        prefetch(self.node_label, node as usize);
        prefetch(self.node_entries, node as usize);
    }

    /// The anchor at a node, or `NONE`.
    #[inline]
    pub fn anchor(&self, node: u32) -> u32 {
        if self.node_anchor.is_empty() { NONE } else { self.node_anchor[node as usize] }
    }
}
