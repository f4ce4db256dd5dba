//! What a query selects: nodes, and the ways to them.

use super::{End, Path, Sink, Tried, Verifier, Visits};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::segment::twig::{AND, NOT, OR};

impl Verifier<'_> {
    /// The nodes that the paths outside `not()` select, in branches that are true.
    pub fn nodes(&mut self, offset: u32) -> Vec<NodeRef> {
        let mut nodes = Vec::new();
        self.each_path(offset, &mut |verifier, path| verifier.select(path, NodeRef::Document, &mut nodes));
        self.in_order(nodes)
    }

    /// Whether a condition holds of an element.
    pub fn holds_at(&mut self, offset: u32, element: ElementId) -> bool {
        self.expr(offset, NodeRef::Element(element))
    }

    /// Appends the nodes that a path selects from an element.
    pub fn select_from(&mut self, offset: u32, element: ElementId, nodes: &mut Vec<NodeRef>) {
        self.select(offset, NodeRef::Element(element), nodes);
    }

    /// The ways to those nodes, one node per step, up to `limit` of them.
    pub fn tuples(&mut self, offset: u32, limit: usize) -> Vec<Vec<NodeRef>> {
        let mut tuples = Vec::new();
        self.each_path(offset, &mut |verifier, path| {
            if tuples.len() >= limit {
                return;
            }
            let Path { test, step, steps } = verifier.decode(path);
            let end = if verifier.looks_at_first(test) {
                let Some(first) = verifier.first(path, NodeRef::Document) else { return };
                End::Node(first)
            } else {
                End::Test(test)
            };
            let (failed, way) = (Tried::default(), Vec::new());
            let mut sink = Sink::Tuples { end, failed, way, tuples: &mut tuples, limit };
            verifier.walk(step, steps, NodeRef::Document, &mut sink);
        });
        let document = self.document;
        tuples.sort_by_cached_key(|tuple| {
            tuple.iter().rev().map(|node| document.order(*node)).collect::<Vec<_>>()
        });
        tuples
    }

    /// Calls `visit` with each path outside `not()` in branches that are true.
    fn each_path(&mut self, offset: u32, visit: &mut impl FnMut(&mut Self, u32)) {
        if !self.expr(offset, NodeRef::Document) {
            return;
        }
        let word = self.words[offset as usize];
        match word & 0xFF {
            AND | OR => {
                for at in 1..=word >> 8 {
                    self.each_path(self.words[(offset + at) as usize], visit);
                }
            }
            NOT => {}
            _ => visit(self, offset),
        }
    }

    /// Appends the nodes of a path that pass its test, in document order.
    fn select(&mut self, path: u32, context: NodeRef, nodes: &mut Vec<NodeRef>) {
        let Path { test, step, steps } = self.decode(path);
        if self.looks_at_first(test) {
            nodes.extend(self.first(path, context));
            return;
        }
        let mut found = Vec::new();
        let mut sink = Sink::Nodes { test, visits: Visits::default(), nodes: &mut found };
        self.walk(step, steps, context, &mut sink);
        nodes.append(&mut self.in_order(found));
    }

    /// The first node of a path in document order.
    pub(super) fn first(&mut self, path: u32, context: NodeRef) -> Option<NodeRef> {
        let Path { step, steps, .. } = self.decode(path);
        let mut sink = Sink::First { visits: Visits::default(), first: None };
        self.walk(step, steps, context, &mut sink);
        if let Sink::First { first, .. } = sink { first } else { None }
    }

    fn in_order(&self, mut nodes: Vec<NodeRef>) -> Vec<NodeRef> {
        nodes.sort_unstable_by_key(|&node| self.document.order(node));
        nodes.dedup();
        nodes
    }
}
