//! The documents that a query is evaluated on: the message, and records of local data.
//!
//! The context node is in one of them, and steps do not leave it. Nodes that are kept, in sets and variables, say to
//! which document they belong. What is remembered of a message says nothing of records.

use super::Verifier;
use crate::data::{Node, Records, TreeId};
use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::NodeId;
use crate::matching::automaton::names::Names;

/// The message, and the records by the names of its segment.
#[derive(Clone, Copy)]
pub struct Trees<'a> {
    message: &'a Document,
    vocabulary: &'a Vocabulary,
    names: &'a Names,
    records: &'a Records,
}

impl<'a> Trees<'a> {
    pub fn new(
        message: &'a Document,
        vocabulary: &'a Vocabulary,
        names: &'a Names,
        records: &'a Records,
    ) -> Trees<'a> {
        Trees { message, vocabulary, names, records }
    }

    pub(super) fn names(&self) -> &'a Names {
        self.names
    }

    /// A document with its vocabulary and names.
    #[inline]
    pub fn at(&self, tree: TreeId) -> (&'a Document, &'a Vocabulary, &'a Names) {
        match (tree.record(), self.records.get(tree), self.names.data()) {
            (Some((set, _)), Some(record), Some(data)) => {
                (record, self.records.vocabulary(set), &data.names[set])
            }
            _ => (self.message, self.vocabulary, self.names),
        }
    }

    #[inline]
    pub fn document(&self, tree: TreeId) -> &'a Document {
        self.records.get(tree).unwrap_or(self.message)
    }

    /// A node's string-value.
    #[inline]
    pub fn value_of(&self, Node { tree, node }: Node) -> &'a [u8] {
        self.document(tree).value_of(node)
    }

    /// A key that sorts nodes in document order.
    #[inline]
    pub fn order(&self, Node { tree, node }: Node) -> (TreeId, (NodeId, u32)) {
        (tree, self.document(tree).order(node))
    }
}

impl<'a> Verifier<'a> {
    /// The message and the records.
    pub fn trees(&self) -> Trees<'a> {
        self.trees
    }

    /// Whether the context node is in a record.
    #[inline(always)]
    pub(super) fn in_record(&self) -> bool {
        !self.tree.is_message()
    }

    /// Evaluates something at a node of a document.
    #[inline]
    pub(super) fn within<T>(&mut self, tree: TreeId, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.tree;
        if tree == outer {
            return evaluate(self);
        }
        self.go_to(tree);
        let result = evaluate(self);
        self.go_to(outer);
        result
    }

    fn go_to(&mut self, tree: TreeId) {
        self.tree = tree;
        (self.document, self.vocabulary, self.names) = self.trees.at(tree);
    }

    /// A node of the document where the context node is.
    #[inline]
    pub(super) fn here(&self, node: NodeRef) -> Node {
        Node { tree: self.tree, node }
    }

    pub(super) fn nodes_here(&self, nodes: Vec<NodeRef>) -> Vec<Node> {
        nodes.into_iter().map(|node| self.here(node)).collect()
    }

    /// Nodes of any documents in document order, each once.
    pub(super) fn nodes_in_order(&self, mut nodes: Vec<Node>) -> Vec<Node> {
        nodes.sort_unstable_by_key(|&node| self.trees.order(node));
        nodes.dedup();
        nodes
    }
}
