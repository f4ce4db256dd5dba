//! What a query selects: nodes, and bindings (the node that each step of a path is bound to).

use super::tried::TriedRanges;
use super::{End, Path, Sink, Verifier, Visits};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::matching::budget::{Decided, WorkLimit};
use crate::segment::twig::{AND, COMPUTED, NOT, OR, part};

impl Verifier<'_> {
    /// The nodes that the paths outside `not()` select, in branches that are true.
    pub fn nodes(&mut self, offset: u32) -> Result<Vec<NodeRef>, WorkLimit> {
        let mut nodes = Vec::new();
        self.each_path(offset, &mut |verifier, path| {
            match verifier.computed_value(path) {
                // Nodes of records are none of the message.
                Some(value) => {
                    let found = verifier.nodes_of_value(value, NodeRef::Document)?.into_iter();
                    nodes.extend(found.filter(|found| found.tree.is_message()).map(|found| found.node));
                }
                None => verifier.select(path, NodeRef::Document, &mut nodes)?,
            }
            Ok(())
        })?;
        Ok(self.in_order(nodes))
    }

    /// Whether a condition holds of an element.
    pub fn holds_at(&mut self, offset: u32, element: ElementId) -> Decided {
        self.expr(offset, NodeRef::Element(element))
    }

    /// Appends the nodes that a path selects from an element.
    pub fn select_from(
        &mut self,
        offset: u32,
        element: ElementId,
        nodes: &mut Vec<NodeRef>,
    ) -> Result<(), WorkLimit> {
        self.select(offset, NodeRef::Element(element), nodes)
    }

    /// The bindings of those nodes, one node per step, up to `limit` of them; none for computed conditions.
    pub fn tuples(&mut self, offset: u32, limit: usize) -> Result<Vec<Vec<NodeRef>>, WorkLimit> {
        let mut tuples = Vec::new();
        self.each_path(offset, &mut |verifier, path| {
            if tuples.len() >= limit || verifier.computed_value(path).is_some() {
                return Ok(());
            }
            let Path { test, step, steps } = verifier.decode(path);
            let end = if verifier.looks_at_first(test) {
                let Some(first) = verifier.first(path, NodeRef::Document)? else { return Ok(()) };
                End::Node(first)
            } else {
                End::Test(test)
            };
            let (failed, way) = (TriedRanges::default(), Vec::new());
            let mut sink = Sink::Tuples { end, failed, way, tuples: &mut tuples, limit };
            verifier.walk(step, steps, NodeRef::Document, &mut sink).map(drop)
        })?;
        let document = self.document;
        tuples.sort_by_cached_key(|tuple| {
            tuple.iter().rev().map(|node| document.order(*node)).collect::<Vec<_>>()
        });
        Ok(tuples)
    }

    /// The value of a computed condition; `None` for a path.
    fn computed_value(&self, offset: u32) -> Option<u32> {
        let word = self.words[offset as usize];
        (word & 0xFF == COMPUTED).then(|| self.words[offset as usize + 1])
    }

    /// Calls `visit` with each path and computed condition outside `not()` in branches that are true.
    fn each_path(
        &mut self,
        offset: u32,
        visit: &mut impl FnMut(&mut Self, u32) -> Result<(), WorkLimit>,
    ) -> Result<(), WorkLimit> {
        if !self.expr(offset, NodeRef::Document)? {
            return Ok(());
        }
        let word = self.words[offset as usize];
        match word & 0xFF {
            AND | OR => {
                (1..=word >> 8).try_for_each(|at| self.each_path(part(self.words, offset, at), visit))
            }
            NOT => Ok(()),
            _ => visit(self, offset),
        }
    }

    /// Appends the nodes of a path that pass its test, in document order.
    pub(super) fn select(
        &mut self,
        path: u32,
        context: NodeRef,
        nodes: &mut Vec<NodeRef>,
    ) -> Result<(), WorkLimit> {
        let Path { test, step, steps } = self.decode(path);
        if self.looks_at_first(test) {
            nodes.extend(self.first(path, context)?);
            return Ok(());
        }
        let mut found = Vec::new();
        let mut sink = Sink::Nodes { test, visits: Visits::default(), nodes: &mut found };
        self.walk(step, steps, context, &mut sink)?;
        nodes.append(&mut self.in_order(found));
        Ok(())
    }

    /// The first node of a path in document order.
    pub(super) fn first(&mut self, path: u32, context: NodeRef) -> Result<Option<NodeRef>, WorkLimit> {
        let Path { step, steps, .. } = self.decode(path);
        let mut sink = Sink::First { visits: Visits::default(), first: None };
        self.walk(step, steps, context, &mut sink)?;
        if let Sink::First { first, .. } = sink { Ok(first) } else { Ok(None) }
    }

    pub(super) fn in_order(&self, mut nodes: Vec<NodeRef>) -> Vec<NodeRef> {
        nodes.sort_unstable_by_key(|&node| self.document.order(node));
        nodes.dedup();
        nodes
    }
}
