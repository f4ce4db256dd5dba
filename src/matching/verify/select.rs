//! What a query selects: nodes, and the ways to them.

use rustc_hash::FxHashSet;

use super::{Path, Sink, Verifier};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::index::twig::{AND, NOT, OR};

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
            let mut ends = Vec::new();
            verifier.select(path, NodeRef::Document, &mut ends);
            let ends: FxHashSet<NodeRef> = ends.into_iter().collect();
            let Path { test, step, steps } = verifier.decode(path);
            let test = verifier.existential(test);
            let mut own = Vec::new();
            let mut sink =
                Sink::Tuples { test, way: Vec::new(), tuples: &mut own, limit: limit - tuples.len() };
            verifier.walk(step, steps, NodeRef::Document, &mut sink);
            own.retain(|way: &Vec<NodeRef>| way.last().is_none_or(|end| ends.contains(end)));
            tuples.append(&mut own);
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
    pub(super) fn select(&mut self, path: u32, context: NodeRef, nodes: &mut Vec<NodeRef>) {
        let Path { test, step, steps } = self.decode(path);
        let existential = self.existential(test);
        let mut found = Vec::new();
        let mut sink = Sink::Nodes { test: existential, seen: FxHashSet::default(), nodes: &mut found };
        self.walk(step, steps, context, &mut sink);
        found = self.in_order(found);
        if existential != test {
            found.truncate(1);
        }
        nodes.append(&mut found);
    }

    fn in_order(&self, mut nodes: Vec<NodeRef>) -> Vec<NodeRef> {
        nodes.sort_unstable_by_key(|&node| self.document.order(node));
        nodes.dedup();
        nodes
    }
}
