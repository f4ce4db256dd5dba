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

use super::columns::{Columns, View};
use crate::ids::{AnchorId, LabelId, TrieNodeId};
use crate::query::ast::Axis;
use crate::util::prefetch::prefetch;

/// A node while the trie is built.
#[derive(Clone, Copy)]
struct NewNode {
    parent: TrieNodeId,
    axis: Axis,
    label: LabelId,
}

/// The trie while a segment is built.
#[derive(Default)]
pub struct Trie {
    nodes: Vec<NewNode>,
    edges: FxHashMap<(TrieNodeId, u32), TrieNodeId>,
}

impl Trie {
    /// Adds a root: one per tenant, before any other node.
    pub fn root(&mut self) -> TrieNodeId {
        self.nodes.push(NewNode { parent: TrieNodeId::NONE, axis: Axis::Child, label: LabelId::ANY });
        TrieNodeId::from(self.nodes.len() - 1)
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The child of a node by an axis and a label, added if it is new.
    pub fn child(&mut self, parent: TrieNodeId, axis: Axis, label: LabelId) -> TrieNodeId {
        let key = (parent, label.0 << 1 | (axis == Axis::Descendant) as u32);
        let nodes = &mut self.nodes;
        *self.edges.entry(key).or_insert_with(|| {
            nodes.push(NewNode { parent, axis, label });
            TrieNodeId::from(nodes.len() - 1)
        })
    }

    pub fn label_of(&self, node: TrieNodeId) -> LabelId {
        self.nodes[node.index()].label
    }

    /// The last labels of the path to a node, leaf first, packed so that numeric order is the order
    /// of reversed paths. Paths with the same end are bound by the same elements.
    pub fn reversed(&self, node: TrieNodeId) -> u128 {
        let mut key = 0;
        let mut at = node;
        for _ in 0..7 {
            let (part, next) = match self.nodes.get(at.index()) {
                Some(node) => {
                    let deep = (node.axis == Axis::Descendant) as u128;
                    ((node.label.0 as u128 & 0x1_FFFF) << 1 | deep, node.parent)
                }
                None => (0, TrieNodeId::NONE),
            };
            key = key << 18 | part;
            at = next;
        }
        key
    }

    /// Writes the trie breadth first and returns the new number of each node. Roots keep their numbers.
    pub fn write(self, columns: &mut Columns) -> Vec<TrieNodeId> {
        let count = self.nodes.len();
        // Children of each node, by counting sort.
        let mut starts = vec![0u32; count + 1];
        let mut order = Vec::with_capacity(count);
        for (id, node) in self.nodes.iter().enumerate() {
            match node.parent {
                TrieNodeId::NONE => order.push(TrieNodeId::from(id)),
                parent => starts[parent.index() + 1] += 1,
            }
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut children = vec![TrieNodeId::NONE; starts[count] as usize];
        let mut fill = starts.clone();
        for (id, node) in self.nodes.iter().enumerate() {
            if node.parent.is_some() {
                let at = &mut fill[node.parent.index()];
                children[*at as usize] = TrieNodeId::from(id);
                *at += 1;
            }
        }
        let key = |id: &TrieNodeId| {
            let node = &self.nodes[id.index()];
            (node.axis, node.label)
        };
        let mut renumbered = vec![TrieNodeId::NONE; count];
        let mut next = 0;
        columns.node_label.reserve(count);
        columns.node_children.reserve(count + 1);
        columns.node_descendants.reserve(count);
        while next < order.len() {
            let id = order[next];
            renumbered[id.index()] = TrieNodeId::from(next);
            columns.node_label.push(self.nodes[id.index()].label);
            let own = &mut children[starts[id.index()] as usize..starts[id.index() + 1] as usize];
            own.sort_unstable_by_key(key);
            let by_child = own.partition_point(|id| self.nodes[id.index()].axis == Axis::Child);
            columns.node_children.push(order.len() as u32);
            columns.node_descendants.push((order.len() + by_child) as u32);
            order.extend_from_slice(own);
            next += 1;
        }
        columns.node_children.push(order.len() as u32);
        renumbered
    }
}

/// The labels of a name: its own, that of its namespace (`p:*`) and that of its local part (`*:a`). `NONE` where no
/// query mentions it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameLabels {
    pub name: LabelId,
    pub namespace: LabelId,
    pub local: LabelId,
    /// A key for the transitions by a name: names with the same labels have the same key, unless two wildcards
    /// select them. All names that no query mentions share a key.
    pub transition_key: u32,
}

impl NameLabels {
    /// All labels, `NONE` among them.
    #[inline(always)]
    pub fn all(self) -> [LabelId; 3] {
        [self.name, self.namespace, self.local]
    }

    /// Whether the name passes the name test of a label.
    #[inline(always)]
    pub fn pass(self, label: LabelId) -> bool {
        label == LabelId::ANY || (label.is_some() && self.all().contains(&label))
    }

    /// Whether the label is that of a wildcard, `p:*` or `*:a`, that selects the name.
    #[inline(always)]
    pub fn pass_wildcard(self, label: LabelId) -> bool {
        label.is_some() && (label == self.namespace || label == self.local)
    }
}

impl View<'_> {
    #[inline]
    pub fn has_children(&self, node: TrieNodeId) -> bool {
        self.node_children[node.index()] < self.node_descendants[node.index()]
    }

    #[inline]
    pub fn has_descendants(&self, node: TrieNodeId) -> bool {
        self.node_descendants[node.index()] < self.node_children[node.index() + 1]
    }

    /// The child of a node by an axis and a label.
    pub fn child(&self, node: TrieNodeId, axis: Axis, label: LabelId) -> Option<TrieNodeId> {
        let (child, descendant) = (self.node_children[node.index()], self.node_descendants[node.index()]);
        let (start, end) = match axis {
            Axis::Child => (child, descendant),
            Axis::Descendant => (descendant, self.node_children[node.index() + 1]),
        };
        let place = self.node_label[start as usize..end as usize].binary_search(&label).ok()?;
        Some(TrieNodeId(start + place as u32))
    }

    /// Appends the nodes that a child with this name binds, of an element that binds `node`.
    #[inline]
    pub fn push_children(&self, node: TrieNodeId, labels: NameLabels, out: &mut Vec<TrieNodeId>) {
        let (start, end) = (self.node_children[node.index()], self.node_descendants[node.index()]);
        self.push_matching(start, end, labels, out);
    }

    /// Appends the nodes that a descendant with this name binds, of an element that binds `node`.
    #[inline]
    pub fn push_descendants(&self, node: TrieNodeId, labels: NameLabels, out: &mut Vec<TrieNodeId>) {
        let (start, end) = (self.node_descendants[node.index()], self.node_children[node.index() + 1]);
        self.push_matching(start, end, labels, out);
    }

    #[inline]
    fn push_matching(&self, start: u32, end: u32, labels: NameLabels, out: &mut Vec<TrieNodeId>) {
        let mut start = start as usize;
        let end = end as usize;
        if start < end && self.node_label[start] == LabelId::ANY {
            out.push(TrieNodeId::from(start));
            start += 1;
        }
        for label in labels.all() {
            if label.is_some()
                && let Ok(at) = self.node_label[start..end].binary_search(&label)
            {
                out.push(TrieNodeId::from(start + at));
            }
        }
    }

    /// Panics if there are more nodes than the trie has. In a damaged trie, where nodes can share children, a set of nodes
    /// would grow with each level of a message.
    pub fn assert_node_set(&self, nodes: &[TrieNodeId]) {
        assert!(nodes.len() <= self.node_label.len(), "the trie is damaged");
    }

    /// Prefetches what `push_children` and `push_descendants` read.
    #[inline]
    pub fn prefetch_children(&self, node: TrieNodeId) {
        prefetch(self.node_children, node.index());
        prefetch(self.node_descendants, node.index());
    }

    /// Prefetches the condition, the anchor, the label and the entries of a node.
    #[inline]
    pub fn prefetch_node(&self, node: TrieNodeId) {
        prefetch(self.node_condition, node.index());
        prefetch(self.node_anchor, node.index());
        prefetch(self.node_label, node.index());
        prefetch(self.node_entries, node.index());
    }

    /// The anchor at a node, or `NONE`.
    #[inline]
    pub fn anchor(&self, node: TrieNodeId) -> AnchorId {
        if self.node_anchor.is_empty() { AnchorId::NONE } else { self.node_anchor[node.index()] }
    }
}
