//! Values that do not depend on the context node, such as `count(//b)` in a predicate: evaluated once per message.
//!
//! In a record they may be others, because `/` is another document there: nothing is remembered.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::Evaluated;
use crate::data::Node;

/// Values by their offset.
#[derive(Default)]
pub struct Once {
    values: FxHashMap<u32, Known>,
    /// The nodes of all of them.
    nodes: usize,
}

enum Known {
    Nodes(Box<[Node]>),
    Number(f64),
    Text(Box<[u8]>),
    Boolean(bool),
}

impl Once {
    pub fn get<'a>(&self, value: u32) -> Option<Evaluated<'a>> {
        Some(match self.values.get(&value)? {
            Known::Nodes(nodes) => Evaluated::Nodes(nodes.to_vec()),
            Known::Number(number) => Evaluated::Number(*number),
            Known::Text(text) => Evaluated::Text(Cow::Owned(text.to_vec())),
            Known::Boolean(boolean) => Evaluated::Boolean(*boolean),
        })
    }

    /// Remembers a value, as long as there are `most` nodes or texts at most.
    pub fn insert(&mut self, value: u32, found: &Evaluated<'_>, most: usize) {
        let known = match found {
            Evaluated::Nodes(nodes) => Known::Nodes(nodes.as_slice().into()),
            Evaluated::Number(number) => Known::Number(*number),
            Evaluated::Text(text) => Known::Text(text.as_ref().into()),
            Evaluated::Boolean(boolean) => Known::Boolean(*boolean),
            Evaluated::Items(_) => return,
        };
        let nodes = match found {
            Evaluated::Text(text) => text.len(),
            found => found.count(),
        };
        if self.nodes + nodes <= most {
            self.nodes += nodes;
            self.values.insert(value, known);
        }
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.nodes = 0;
    }

    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<(u32, Known)>() + self.nodes * size_of::<Node>()
    }
}
