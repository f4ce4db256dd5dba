//! Steps of walks along any axis, and their predicates.
//!
//! A step without positions is taken from all context nodes at once, so it costs at most one visit of each node of the
//! document. With positions, each context node is handled by itself: `//a[last()]` counts the children of each parent. A
//! position that comes first, as in `preceding-sibling::a[1]`, ends the step when it is reached.

use super::{Evaluated, Focus, NodeTable, near};
use crate::data::Node;
use crate::document::{NodeRef, OtherKind};
use crate::ids::LabelId;
use crate::matching::budget::{Decided, WorkLimit};
use crate::matching::twigs::verify::Verifier;
use crate::query::value::WalkAxis;
use crate::segment::format::NONE;
use crate::segment::twig::values::*;

/// A step of a walk, decoded.
#[derive(Clone, Copy)]
pub(super) struct WalkStep {
    pub(super) axis: WalkAxis,
    pub(super) test: u32,
    /// A label, or the offset of a target.
    pub(super) detail: u32,
    counts: bool,
    /// Where its predicates are, and how many.
    pub(super) predicates: (u32, u32),
}

impl WalkStep {
    /// `descendant-or-self::node()`
    fn is_descend(self) -> bool {
        self.axis == WalkAxis::DescendantOrSelf && self.test == TEST_NODE && self.predicates.1 == 0
    }

    /// Whether its nodes are elements, or attributes.
    fn asks_names(self) -> bool {
        matches!(self.test, TEST_NAME | TEST_ANY_NAME | TEST_WILDCARD)
    }

    /// Whether its nodes from a node are found without a table.
    pub(super) fn is_near(self, node: NodeRef) -> bool {
        near::serves(self.axis, self.asks_names(), node)
    }

    /// Whether its nodes from several nodes are those from each.
    fn is_each(self) -> bool {
        matches!(self.axis, WalkAxis::Itself | WalkAxis::Child | WalkAxis::Attribute | WalkAxis::Parent)
    }
}

impl<'a> Verifier<'a> {
    pub(super) fn walk_step(&self, at: u32) -> WalkStep {
        let word = self.words[at as usize];
        WalkStep {
            axis: WalkAxis::ALL[(word & 0xFF) as usize],
            test: word >> 8 & 0xFF,
            detail: self.words[at as usize + 1],
            counts: word & COUNTS != 0,
            predicates: (at + 3, self.words[at as usize + 2]),
        }
    }

    pub(super) fn step_of_walk(&self, walk: u32, place: u32) -> WalkStep {
        self.walk_step(self.words[(walk + 2 + place) as usize])
    }

    /// The nodes that the first steps of a walk, so many, lead to.
    pub(super) fn walk_nodes(
        &mut self,
        (walk, steps): (u32, u32),
        context: NodeRef,
    ) -> Result<Vec<Node>, WorkLimit> {
        let mut nodes = self.nodes_of_value(self.words[walk as usize + 1], context)?;
        let mut place = 0;
        while place < steps {
            let step = self.step_of_walk(walk, place);
            let next = (place + 1 < steps)
                .then(|| self.step_of_walk(walk, place + 1))
                .filter(|next| step.is_descend() && next.counts && next.axis == WalkAxis::Child);
            nodes = self.by_document(nodes, |verifier, nodes| match next {
                Some(next) => verifier.take_counted_below(step, next, nodes),
                None => verifier.take_step(step, nodes),
            })?;
            place += 1 + u32::from(next.is_some());
        }
        Ok(nodes)
    }

    /// The nodes that steps select from others, document by document.
    fn by_document(
        &mut self,
        nodes: Vec<Node>,
        mut select: impl FnMut(&mut Self, Vec<NodeRef>) -> Result<Vec<NodeRef>, WorkLimit>,
    ) -> Result<Vec<Node>, WorkLimit> {
        let mut found = Vec::new();
        // In document order, so the nodes of one document stand side by side.
        for of_tree in nodes.chunk_by(|one, other| one.tree == other.tree) {
            let nodes = of_tree.iter().map(|node| node.node).collect();
            let mut selected = self.within(of_tree[0].tree, |verifier| {
                let selected = select(verifier, nodes)?;
                Ok(verifier.nodes_here(selected))
            })?;
            found.append(&mut selected);
        }
        Ok(found)
    }

    /// The nodes that a step selects from others of one document.
    fn take_step(&mut self, step: WalkStep, nodes: Vec<NodeRef>) -> Result<Vec<NodeRef>, WorkLimit> {
        if !step.counts {
            let found = match nodes.as_slice() {
                [node] => {
                    let mut found = self.axis_from(step, *node, usize::MAX)?;
                    if step.axis.is_reverse() {
                        found.reverse();
                    }
                    found
                }
                nodes => {
                    let mut found = Vec::new();
                    self.axis_nodes(step, nodes, &mut found)?;
                    self.in_order(found)
                }
            };
            return self.filter_here(found, step.predicates);
        }
        let most = self.first_position(step);
        let mut all = Vec::new();
        for node in nodes {
            let found = self.axis_from(step, node, most)?;
            all.append(&mut self.filter_here(found, step.predicates)?);
        }
        Ok(self.in_order(all))
    }

    /// `//a[last()]`: the children of each parent below, where positions count those of one parent.
    fn take_counted_below(
        &mut self,
        descend: WalkStep,
        step: WalkStep,
        nodes: Vec<NodeRef>,
    ) -> Result<Vec<NodeRef>, WorkLimit> {
        let descend =
            WalkStep { axis: WalkAxis::Descendant, test: step.test, detail: step.detail, ..descend };
        let mut found = Vec::new();
        self.axis_nodes(descend, &nodes, &mut found)?;
        let (document, table) = (self.document, self.take_table());
        let parent = |node: NodeRef| table.parent_number(document.node_id(node).0);
        let mut children: Vec<(u32, NodeRef)> =
            self.in_order(found).into_iter().map(|node| (parent(node), node)).collect();
        self.keep_table(table);
        // Stable: those of a parent stay in document order.
        children.sort_by_key(|&(parent, _)| parent);
        let mut all = Vec::new();
        for siblings in children.chunk_by(|(one, _), (other, _)| one == other) {
            let siblings = siblings.iter().map(|&(_, node)| node).collect();
            all.append(&mut self.filter_here(siblings, step.predicates)?);
        }
        Ok(self.in_order(all))
    }

    /// The nodes of the document where the context node is. What was taken has to be given back, to be kept.
    pub(super) fn take_table(&mut self) -> NodeTable {
        let known = match self.in_record() {
            true => self.record_nodes.take().filter(|&(tree, _)| tree == self.tree).map(|(_, table)| table),
            false => self.memo.nodes.take(),
        };
        known.unwrap_or_else(|| NodeTable::new(self.document))
    }

    pub(super) fn keep_table(&mut self, table: NodeTable) {
        match self.in_record() {
            true => self.record_nodes = Some((self.tree, table)),
            false => self.memo.nodes = Some(table),
        }
    }

    /// The nodes on an axis from others that pass the step's test, in any order.
    fn axis_nodes(
        &mut self,
        step: WalkStep,
        nodes: &[NodeRef],
        found: &mut Vec<NodeRef>,
    ) -> Result<(), WorkLimit> {
        let is_near = step.is_each() && nodes.iter().all(|&node| step.is_near(node));
        let table = (!is_near).then(|| self.take_table());
        let (document, mut visited) = (self.document, 0);
        let mut visit = |node| {
            visited += 1;
            if self.passes(step, node) {
                found.push(node);
            }
        };
        match table {
            None => nodes.iter().for_each(|&node| {
                near::for_each(document, step.axis, node, |node| {
                    visit(node);
                    true
                });
            }),
            Some(mut table) => {
                table.for_each(document, step.axis, nodes, visit);
                self.keep_table(table);
            }
        }
        // Afterwards: one axis visits a node of the document once.
        self.budget.spend(nodes.len() + visited)
    }

    /// The nodes on an axis from one node that pass the step's test, in the order of the axis; the first `most` of them.
    pub(super) fn axis_from(
        &mut self,
        step: WalkStep,
        node: NodeRef,
        most: usize,
    ) -> Result<Vec<NodeRef>, WorkLimit> {
        let (mut found, mut visited, left) = (Vec::new(), 0, self.budget.left());
        let table = (!step.is_near(node)).then(|| self.take_table());
        let document = self.document;
        let visit = |node| {
            visited += 1;
            if self.passes(step, node) {
                found.push(node);
            }
            found.len() < most && visited < left
        };
        match table {
            None => near::for_each(document, step.axis, node, visit),
            Some(table) => {
                table.for_each_in_order(document, step.axis, node, visit);
                self.keep_table(table);
            }
        }
        self.budget.spend(1 + visited)?;
        Ok(found)
    }

    /// The position that the first predicate of a step is, or one past all.
    fn first_position(&self, step: WalkStep) -> usize {
        let (at, count) = step.predicates;
        let first = self.words[at as usize] as usize;
        if count == 0 || self.words[first] & 0xFF != VALUE_NUMBER {
            return usize::MAX;
        }
        let number = f64::from_bits(self.words[first + 1] as u64 | (self.words[first + 2] as u64) << 32);
        if number >= 1.0 { number as usize } else { 1 }
    }

    pub(super) fn passes(&self, step: WalkStep, node: NodeRef) -> bool {
        let document = self.document;
        match step.test {
            TEST_NODE => true,
            TEST_TEXT_NODE => matches!(node, NodeRef::Text(_)),
            TEST_COMMENT => {
                matches!(node, NodeRef::Other(place) if document.others[place as usize].kind == OtherKind::Comment)
            }
            TEST_INSTRUCTION => match node {
                NodeRef::Other(place) => match document.others[place as usize].kind {
                    OtherKind::Comment => false,
                    OtherKind::Instruction { target } => {
                        step.detail == NONE || target.of(&document.values) == self.text(step.detail)
                    }
                },
                _ => false,
            },
            test => {
                let name = match (node, step.axis) {
                    (NodeRef::Attribute(_, place), WalkAxis::Attribute) => {
                        document.attributes[place as usize].name
                    }
                    (NodeRef::Element(element), axis) if axis != WalkAxis::Attribute => {
                        document.element(element).name
                    }
                    _ => return false,
                };
                match test {
                    TEST_ANY_NAME => document.envelope_name() != Some(name),
                    TEST_NAME => self.names.name_of(LabelId(step.detail)) == name,
                    _ => self.names.of(name).pass_wildcard(LabelId(step.detail)),
                }
            }
        }
    }

    /// The nodes of one document that pass predicates.
    fn filter_here(
        &mut self,
        nodes: Vec<NodeRef>,
        predicates: (u32, u32),
    ) -> Result<Vec<NodeRef>, WorkLimit> {
        if predicates.1 == 0 {
            return Ok(nodes);
        }
        let nodes = self.nodes_here(nodes);
        Ok(self.filter(nodes, predicates)?.into_iter().map(|node| node.node).collect())
    }

    /// The nodes that pass predicates, each of which counts what the ones before it left.
    pub(super) fn filter(
        &mut self,
        mut nodes: Vec<Node>,
        (at, count): (u32, u32),
    ) -> Result<Vec<Node>, WorkLimit> {
        let outer = self.focus;
        let kept = (at..at + count).try_for_each(|predicate| {
            let predicate = self.words[predicate as usize];
            let size = nodes.len();
            let mut kept = 0;
            for at in 0..size {
                self.focus = Focus { position: at + 1, size };
                nodes[kept] = nodes[at];
                let Node { tree, node } = nodes[at];
                kept += usize::from(self.within(tree, |verifier| verifier.keeps(predicate, node))?);
            }
            nodes.truncate(kept);
            Ok(())
        });
        // Also past the work limit: the verifier goes on with the next query.
        self.focus = outer;
        kept.map(|()| nodes)
    }

    pub(super) fn keeps(&mut self, predicate: u32, node: NodeRef) -> Decided {
        let condition = self.words[predicate as usize + 1];
        // Not one that varies.
        if let (VALUE_CONDITION, NodeRef::Element(element)) = (self.words[predicate as usize], node) {
            return self.remembered(condition, element);
        }
        Ok(match self.value(predicate, node)? {
            Evaluated::Number(number) => number == self.focus.position as f64,
            value => value.boolean(),
        })
    }
}
