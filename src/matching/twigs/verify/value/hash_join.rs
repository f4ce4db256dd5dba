//! Nodes that equal a value which depends on variables: a hash table of all of them is made once for a message.
//!
//! `for $o in //order, $i in //item[@order = $o/@id]` costs the orders and the items, not their product.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use super::Evaluated;
use crate::data::Node;
use crate::document::NodeRef;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;
use crate::tuning::JOIN_TABLES;

/// Nodes in document order, and the places of those that have a value, by its hash.
pub struct NodesByValue {
    nodes: Vec<Node>,
    places: FxHashMap<u64, Vec<u32>>,
}

impl NodesByValue {
    /// Memory in bytes, approximately.
    pub fn bytes(&self) -> usize {
        let places: usize = self.places.values().map(|places| places.capacity() * size_of::<u32>()).sum();
        self.nodes.capacity() * size_of::<Node>()
            + self.places.capacity() * size_of::<(u64, Vec<u32>)>()
            + places
    }
}

impl Verifier<'_> {
    /// The nodes of a join, compiled at `at`.
    pub(super) fn joined_nodes(&mut self, at: u32, context: NodeRef) -> Result<Vec<Node>, WorkLimit> {
        let count = self.words[at as usize] >> 8;
        let [nodes, key, value] = [1, 2, 3].map(|place| self.words[at as usize + place]);
        let table = self.nodes_by_value(at, nodes, key, context)?;
        let evaluated = self.value(value, context)?;
        self.spend_values(&evaluated)?;
        let find = |text: &[u8]| table.places.get(&hash(text)).map_or(&[][..], Vec::as_slice);
        let mut places: Vec<u32> = match evaluated {
            Evaluated::Nodes(nodes) => {
                nodes.iter().flat_map(|&node| find(self.trees.value_of(node))).copied().collect()
            }
            Evaluated::Text(text) => find(&text).to_vec(),
            // Compared otherwise than as strings: each node is.
            _ => (0..table.nodes.len() as u32).collect(),
        };
        self.budget.spend(places.len())?;
        places.sort_unstable();
        places.dedup();
        let found = places.into_iter().map(|place| table.nodes[place as usize]).collect();
        // The equality itself too: hashes may collide.
        self.filter(found, (at + 4, count))
    }

    fn nodes_by_value(
        &mut self,
        at: u32,
        nodes: u32,
        key: u32,
        context: NodeRef,
    ) -> Result<Arc<NodesByValue>, WorkLimit> {
        // In a record, `/` is another document.
        if let (Some(known), false) = (self.memo.joins.get(&at), self.in_record()) {
            return Ok(known.clone());
        }
        let nodes = self.nodes_of_value(nodes, context)?;
        let mut places: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (place, &Node { tree, node }) in nodes.iter().enumerate() {
            let keys = self.within(tree, |verifier| verifier.nodes_of_value(key, node))?;
            for key in keys {
                let text = self.trees.value_of(key);
                self.budget.spend_bytes(text.len())?;
                places.entry(hash(text)).or_default().push(place as u32);
            }
        }
        let table = Arc::new(NodesByValue { nodes, places });
        if !self.in_record() {
            if self.memo.joins.len() >= JOIN_TABLES {
                self.memo.joins.clear();
            }
            self.memo.joins.insert(at, table.clone());
        }
        Ok(table)
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}
