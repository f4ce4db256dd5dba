//! The shared-prefix trie of all lines while a segment is built; `freeze` lays it out flat.

use rustc_hash::FxHashMap;

use crate::query::ast::{Axis, NameTest};
use crate::segment::format::columns::Columns;

/// The label of `*`.
pub const ANY: u32 = 0;
/// No label, no node, no condition.
pub const NONE: u32 = u32::MAX;

/// Name tests as numbers.
pub struct Labels {
    ids: FxHashMap<Vec<u8>, u32>,
    key: Vec<u8>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// How a label's text begins: a name test of one name, or of a whole namespace. The namespace URI
/// follows, then NUL, then the local part.
pub const LABEL_NAME: u8 = b'n';
pub const LABEL_NAMESPACE: u8 = b'u';

impl Default for Labels {
    fn default() -> Labels {
        Labels { ids: FxHashMap::default(), key: Vec::new(), bytes: Vec::new(), ends: vec![0] }
    }
}

impl Labels {
    pub fn label(&mut self, test: &NameTest) -> u32 {
        self.key.clear();
        match test {
            NameTest::Any => return ANY,
            NameTest::AnyIn(uri) => label_key(LABEL_NAMESPACE, uri.as_bytes(), b"", &mut self.key),
            NameTest::Name(name) => {
                label_key(LABEL_NAME, name.uri.as_bytes(), name.local.as_bytes(), &mut self.key)
            }
        }
        if let Some(&label) = self.ids.get(&self.key) {
            return label;
        }
        let label = self.ends.len() as u32;
        self.bytes.extend(&self.key);
        self.ends.push(self.bytes.len() as u32);
        self.ids.insert(self.key.clone(), label);
        label
    }

    pub fn freeze(self, columns: &mut Columns) {
        columns.label_bytes = self.bytes;
        columns.label_ends = self.ends;
    }
}

/// The text of a label, appended to `key`.
pub fn label_key(kind: u8, uri: &[u8], local: &[u8], key: &mut Vec<u8>) {
    key.push(kind);
    key.extend(uri);
    key.push(0);
    key.extend(local);
}

/// A node while the trie grows.
#[derive(Clone, Copy)]
struct Grown {
    parent: u32,
    axis: Axis,
    label: u32,
}

#[derive(Default)]
pub struct Trie {
    nodes: Vec<Grown>,
    edges: FxHashMap<(u32, u32), u32>,
}

impl Trie {
    /// Adds a root: one per tenant, before anything else grows.
    pub fn root(&mut self) -> u32 {
        self.nodes.push(Grown { parent: NONE, axis: Axis::Child, label: ANY });
        self.nodes.len() as u32 - 1
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    pub fn child(&mut self, parent: u32, axis: Axis, label: u32) -> u32 {
        let key = (parent, label << 1 | (axis == Axis::Descendant) as u32);
        let nodes = &mut self.nodes;
        *self.edges.entry(key).or_insert_with(|| {
            nodes.push(Grown { parent, axis, label });
            nodes.len() as u32 - 1
        })
    }

    pub fn label_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].label
    }

    /// The last labels of the path to a node, leaf first, packed so that numeric order is the order
    /// of reversed paths. Paths that end alike are reached by the same elements.
    pub fn reversed(&self, node: u32) -> u128 {
        let mut key = 0;
        let mut at = node;
        for _ in 0..7 {
            let (part, next) = match self.nodes.get(at as usize) {
                Some(grown) => {
                    let deep = (grown.axis == Axis::Descendant) as u128;
                    ((grown.label as u128 & 0x1_FFFF) << 1 | deep, grown.parent)
                }
                None => (0, NONE),
            };
            key = key << 18 | part;
            at = next;
        }
        key
    }

    /// Lays the trie out breadth first and returns the new number of each node.
    ///
    /// Roots come first and keep their numbers.
    pub fn freeze(self, columns: &mut Columns) -> Vec<u32> {
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
