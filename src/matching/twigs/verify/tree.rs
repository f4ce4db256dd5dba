//! The documents that a query is evaluated on: the message, and records of local data.
//!
//! The context node is in one of them, and steps do not leave it. Nodes that are kept, in sets and variables, say to
//! which document they belong. What is remembered of a message says nothing of records.

use super::Verifier;
use crate::data::{Node, TreeId};
use crate::document::{Document, NodeRef, Vocabulary};
use crate::ids::NodeId;
use crate::matching::automaton::names::Names;

/// The message, and the records by the names of its segment.
#[derive(Clone, Copy)]
pub struct Trees<'a> {
    message: &'a Document,
    vocabulary: &'a Vocabulary,
    names: &'a Names,
}

impl<'a> Trees<'a> {
    pub(super) fn new(message: &'a Document, vocabulary: &'a Vocabulary, names: &'a Names) -> Trees<'a> {
        Trees { message, vocabulary, names }
    }

    pub(super) fn names(&self) -> &'a Names {
        self.names
    }

    /// A document with its vocabulary and names.
    #[inline]
    pub fn at(&self, tree: TreeId) -> (&'a Document, &'a Vocabulary, &'a Names) {
        match (tree.record(), self.names.data()) {
            (Some((set, record)), Some(data)) => {
                let records = data.sets.at(set);
                (&records.records[record], records.vocabulary(), &data.names[set])
            }
            _ => (self.message, self.vocabulary, self.names),
        }
    }

    #[inline]
    pub fn document(&self, tree: TreeId) -> &'a Document {
        if tree.is_message() { self.message } else { self.at(tree).0 }
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
