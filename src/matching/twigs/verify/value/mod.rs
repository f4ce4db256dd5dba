//! Evaluates values on the document: XPath 1.0 by its definition, node set by node set.
//!
//! A step without positions is taken from all context nodes at once, so it costs at most one visit of each node
//! of the document. With positions, each context node is handled by itself.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | values, steps, predicates |
//! | `axes.rs` | the nodes of an axis |
//! | `calls.rs` | functions |
//! | `variables.rs` | variables, and the clauses that bind them |
//! | `compare.rs` | comparisons, conversions |
//! | `items.rs` | sequences, and functions of them |
//! | `patterns.rs` | regular expressions, compiled once |
//! | `hash_join.rs` | nodes that are looked up by their values |
//! | `local_data.rs` | the records that a walk can meet |

mod axes;
mod calls;
mod compare;
mod hash_join;
mod items;
mod local_data;
mod patterns;
mod variables;

use std::borrow::Cow;

pub(super) use axes::NodeTable;
pub(super) use hash_join::NodesByValue;
pub use items::Item;
pub(super) use patterns::Patterns;
pub(super) use variables::Variables;

use rustc_hash::FxHashSet;

use super::Verifier;
use super::below::{children, leaves};
use crate::data::Node;
use crate::document::{NodeRef, OtherKind};
use crate::ids::LabelId;
use crate::matching::budget::{Decided, WorkLimit};
use crate::query::atomic::Atomic;
use crate::query::value::{Arithmetic, SetOperation, WalkAxis};
use crate::segment::format::NONE;
use crate::segment::twig::values::*;
use crate::segment::twig::{
    FROM_CONTEXT, FROM_DOCUMENT, FROM_MESSAGE, FROM_VARIABLE, STEP_ATTRIBUTE_ANY, operator_of,
};

/// The value of an expression at a context node.
#[derive(Clone)]
pub enum Evaluated<'a> {
    /// In document order, each once.
    Nodes(Vec<Node>),
    Number(f64),
    Text(Cow<'a, [u8]>),
    Boolean(bool),
    /// A sequence of XPath 2.0.
    Items(Vec<Item<'a>>),
}

/// The context position and the context size.
#[derive(Clone, Copy)]
pub(super) struct Focus {
    position: usize,
    size: usize,
}

impl Focus {
    pub(super) const SINGLE: Focus = Focus { position: 1, size: 1 };
}

/// A step of a walk, decoded.
#[derive(Clone, Copy)]
struct WalkStep {
    axis: WalkAxis,
    test: u32,
    /// A label, or the offset of a target.
    detail: u32,
    counts: bool,
    /// Where its predicates are, and how many.
    predicates: (u32, u32),
}

impl<'a> Verifier<'a> {
    /// The value of a compiled expression at a node of the message.
    pub fn value_at(&mut self, value: u32, node: NodeRef) -> Result<Evaluated<'a>, WorkLimit> {
        self.value(value, node)
    }

    /// Counts steps.
    pub fn spend(&mut self, steps: usize) -> Result<(), WorkLimit> {
        self.budget.spend(steps)
    }

    /// Whether the condition with this value holds.
    pub(super) fn computed(&mut self, value: u32, context: NodeRef) -> Decided {
        Ok(self.value(value, context)?.boolean())
    }

    /// The nodes of a value in document order; none if it is no node set.
    pub(super) fn nodes_of_value(&mut self, value: u32, context: NodeRef) -> Result<Vec<Node>, WorkLimit> {
        Ok(match self.value(value, context)? {
            Evaluated::Nodes(nodes) => nodes,
            _ => Vec::new(),
        })
    }

    fn value(&mut self, at: u32, context: NodeRef) -> Result<Evaluated<'a>, WorkLimit> {
        self.budget.enter();
        let value = self.evaluate(at, context);
        self.budget.leave();
        value
    }

    fn evaluate(&mut self, at: u32, context: NodeRef) -> Result<Evaluated<'a>, WorkLimit> {
        self.budget.spend(1)?;
        let word = self.words[at as usize];
        let operand = |place: u32| self.words[(at + place) as usize];
        Ok(match word & 0xFF {
            VALUE_NUMBER => Evaluated::Number(f64::from_bits(operand(1) as u64 | (operand(2) as u64) << 32)),
            VALUE_TEXT => Evaluated::Text(Cow::Borrowed(self.text(at))),
            VALUE_CONDITION => Evaluated::Boolean(self.expr(operand(1), context)?),
            VALUE_NODES => Evaluated::Nodes(self.path_nodes(operand(1), context)?),
            VALUE_UNION => {
                let mut nodes = Vec::new();
                for place in 1..=word >> 8 {
                    nodes.append(&mut self.nodes_of_value(self.words[(at + place) as usize], context)?);
                }
                Evaluated::Nodes(self.nodes_in_order(nodes))
            }
            VALUE_FILTER => match self.value(operand(1), context)? {
                Evaluated::Items(items) => {
                    Evaluated::Items(self.filter_items(items, (at + 2, word >> 8), context)?)
                }
                Evaluated::Nodes(nodes) => Evaluated::Nodes(self.filter(nodes, (at + 2, word >> 8), true)?),
                _ => Evaluated::Nodes(Vec::new()),
            },
            VALUE_WALK => {
                let mut nodes = self.nodes_of_value(operand(1), context)?;
                for place in 0..word >> 8 {
                    let step = self.walk_step(self.words[(at + 2 + place) as usize]);
                    nodes = self.take_step(step, nodes)?;
                }
                Evaluated::Nodes(nodes)
            }
            VALUE_CALL => self.call(word >> 8 & 0xFF, at + 1, word >> 16, context)?,
            VALUE_ARITHMETIC => {
                let operation = Arithmetic::ALL[(word >> 8) as usize];
                let (left, right) = (operand(1), operand(2));
                let left = self.number_of(left, context)?;
                Evaluated::Number(operation.of(left, self.number_of(right, context)?))
            }
            VALUE_NEGATIVE => Evaluated::Number(-self.number_of(operand(1), context)?),
            VALUE_VARIABLE => {
                let value = self.variables.value(word >> 8);
                self.spend_values(&value)?;
                value
            }
            VALUE_SOME => Evaluated::Boolean(self.has_tuple((at + 1, word >> 8), context)?),
            VALUE_SETS => {
                let (operation, left, right) = (word >> 8, operand(1), operand(2));
                let mut nodes = self.nodes_of_value(left, context)?;
                let others: FxHashSet<Node> = self.nodes_of_value(right, context)?.into_iter().collect();
                self.budget.spend(nodes.len() + others.len())?;
                let keeps_common = operation == SetOperation::Intersect as u32;
                nodes.retain(|node| others.contains(node) == keeps_common);
                Evaluated::Nodes(nodes)
            }
            VALUE_SEQUENCE => {
                let mut items = Vec::new();
                for place in 1..=word >> 8 {
                    items.append(&mut self.items(self.words[(at + place) as usize], context)?);
                }
                Evaluated::Items(items)
            }
            VALUE_EACH => self.each(operand(1), operand(2), context)?,
            VALUE_IF => {
                let (condition, then, otherwise) = (operand(1), operand(2), operand(3));
                let holds = self.value(condition, context)?.boolean();
                self.value(if holds { then } else { otherwise }, context)?
            }
            VALUE_CASTABLE => {
                let (target, may_be_empty) = (Atomic::ALL[(word >> 8 & 0xFF) as usize], word >> 16 != 0);
                Evaluated::Boolean(match self.items(operand(1), context)?.as_slice() {
                    [] => may_be_empty,
                    [Item::Number(number)] => target.takes_number(*number),
                    [Item::Boolean(_)] => target.takes_boolean(),
                    [item] => {
                        let text = item.text(self.trees);
                        self.budget.spend_bytes(text.len())?;
                        target.takes_text(&text)
                    }
                    _ => false,
                })
            }
            VALUE_DATA => Evaluated::Nodes(self.data(at, context)?),
            VALUE_JOIN => Evaluated::Nodes(self.joined_nodes(at, context)?),
            _ => {
                let (left, right) = (operand(1), operand(2));
                let left = self.value(left, context)?;
                let right = self.value(right, context)?;
                self.spend_values(&left)?;
                self.spend_values(&right)?;
                if matches!(left, Evaluated::Items(_)) || matches!(right, Evaluated::Items(_)) {
                    self.budget.spend(left.count().saturating_mul(right.count()))?;
                }
                Evaluated::Boolean(compare::holds(self.trees, operator_of(word >> 8), left, right))
            }
        })
    }

    /// Counts the steps of reading a value whole, each node of a set.
    fn spend_values(&mut self, value: &Evaluated<'_>) -> Result<(), WorkLimit> {
        match value {
            Evaluated::Nodes(nodes) => {
                nodes.iter().try_for_each(|&node| self.budget.spend_bytes(self.trees.value_of(node).len()))
            }
            Evaluated::Text(text) => self.budget.spend_bytes(text.len()),
            Evaluated::Items(items) => {
                items.iter().try_for_each(|item| self.budget.spend_bytes(item.text_length(self.trees)))
            }
            Evaluated::Number(_) | Evaluated::Boolean(_) => Ok(()),
        }
    }

    fn number_of(&mut self, value: u32, context: NodeRef) -> Result<f64, WorkLimit> {
        let value = self.value(value, context)?;
        let bytes = match &value {
            Evaluated::Nodes(nodes) => compare::first_text(self.trees, nodes).len(),
            Evaluated::Text(text) => text.len(),
            Evaluated::Items(items) => items.first().map_or(0, |item| item.text_length(self.trees)),
            Evaluated::Number(_) | Evaluated::Boolean(_) => 0,
        };
        self.budget.spend_bytes(bytes)?;
        Ok(value.number(self.trees))
    }

    fn text_of(&mut self, value: u32, context: NodeRef) -> Result<Cow<'a, [u8]>, WorkLimit> {
        let text = self.value(value, context)?.text(self.trees);
        self.budget.spend_bytes(text.len())?;
        Ok(text)
    }

    /// The bytes of a string in the words.
    fn text(&self, at: u32) -> &'a [u8] {
        let words: &'a [u32] = self.words;
        let bytes: &'a [u8] = bytemuck::cast_slice(&words[at as usize + 1..]);
        &bytes[..(words[at as usize] >> 8) as usize]
    }

    fn path_nodes(&mut self, path: u32, context: NodeRef) -> Result<Vec<Node>, WorkLimit> {
        match self.words[path as usize] >> 8 & 0xFF {
            FROM_CONTEXT => self.path_nodes_from(path, self.here(context)),
            FROM_DOCUMENT => self.path_nodes_from(path, self.here(NodeRef::Document)),
            FROM_MESSAGE => self.path_nodes_from(path, Node::of_message(NodeRef::Document)),
            from => {
                let starts = self.variables.nodes(from - FROM_VARIABLE);
                if let [start] = *starts {
                    return self.path_nodes_from(path, start);
                }
                let (starts, mut nodes) = (starts.to_vec(), Vec::new());
                for start in starts {
                    nodes.append(&mut self.path_nodes_from(path, start)?);
                }
                Ok(self.nodes_in_order(nodes))
            }
        }
    }

    fn path_nodes_from(&mut self, path: u32, start: Node) -> Result<Vec<Node>, WorkLimit> {
        self.within(start.tree, |verifier| {
            let mut nodes = Vec::new();
            verifier.select(path, start.node, &mut nodes)?;
            Ok(verifier.nodes_here(nodes))
        })
    }

    fn walk_step(&self, at: u32) -> WalkStep {
        let word = self.words[at as usize];
        WalkStep {
            axis: WalkAxis::ALL[(word & 0xFF) as usize],
            test: word >> 8 & 0xFF,
            detail: self.words[at as usize + 1],
            counts: word & COUNTS != 0,
            predicates: (at + 3, self.words[at as usize + 2]),
        }
    }

    /// The nodes that a step selects from others.
    fn take_step(&mut self, step: WalkStep, nodes: Vec<Node>) -> Result<Vec<Node>, WorkLimit> {
        let mut found = Vec::new();
        let mut rest = nodes.as_slice();
        // In document order, so the nodes of one document stand side by side.
        while let Some(&Node { tree, .. }) = rest.first() {
            let (of_tree, others) = rest.split_at(rest.partition_point(|node| node.tree <= tree));
            rest = others;
            let nodes: Vec<NodeRef> = of_tree.iter().map(|node| node.node).collect();
            let mut selected = self.within(tree, |verifier| {
                let selected = verifier.take_step_here(step, nodes)?;
                Ok(verifier.nodes_here(selected))
            })?;
            found.append(&mut selected);
        }
        Ok(found)
    }

    /// The same in one document.
    fn take_step_here(&mut self, step: WalkStep, nodes: Vec<NodeRef>) -> Result<Vec<NodeRef>, WorkLimit> {
        if !step.counts {
            let mut found = Vec::new();
            self.axis_nodes(step, &nodes, &mut found)?;
            let found = self.in_order(found);
            return self.filter_here(found, step.predicates, false);
        }
        let mut all = Vec::new();
        for node in nodes {
            let mut found = Vec::new();
            self.axis_nodes(step, &[node], &mut found)?;
            let mut found = self.in_order(found);
            if step.axis.is_reverse() {
                found.reverse();
            }
            all.append(&mut self.filter_here(found, step.predicates, true)?);
        }
        Ok(self.in_order(all))
    }

    fn filter_here(
        &mut self,
        nodes: Vec<NodeRef>,
        predicates: (u32, u32),
        counts: bool,
    ) -> Result<Vec<NodeRef>, WorkLimit> {
        if predicates.1 == 0 {
            return Ok(nodes);
        }
        let nodes = self.nodes_here(nodes);
        Ok(self.filter(nodes, predicates, counts)?.into_iter().map(|node| node.node).collect())
    }

    /// The nodes on an axis from others that pass the step's test, in any order.
    fn axis_nodes(
        &mut self,
        step: WalkStep,
        nodes: &[NodeRef],
        found: &mut Vec<NodeRef>,
    ) -> Result<(), WorkLimit> {
        let mut visited = 0;
        let document = self.document;
        let is_name = matches!(step.test, TEST_NAME | TEST_ANY_NAME | TEST_WILDCARD);
        if self.in_record() && is_name && matches!(step.axis, WalkAxis::Child | WalkAxis::Attribute) {
            return self.near_nodes(step, nodes, found);
        }
        let known = if self.in_record() { None } else { self.memo.nodes.take() };
        let mut table = known.unwrap_or_else(|| NodeTable::new(document));
        table.for_each(document, step.axis, nodes, |node| {
            visited += 1;
            if self.passes(step, node) {
                found.push(node);
            }
        });
        if !self.in_record() {
            self.memo.nodes = Some(table);
        }
        // Afterwards: one axis visits a node of the document once.
        self.budget.spend(nodes.len() + visited)
    }

    /// The same for the elements and attributes below nodes of a record, without a table of all its nodes.
    fn near_nodes(
        &mut self,
        step: WalkStep,
        nodes: &[NodeRef],
        found: &mut Vec<NodeRef>,
    ) -> Result<(), WorkLimit> {
        let document = self.document;
        for &node in nodes {
            match step.axis {
                WalkAxis::Attribute => {
                    let NodeRef::Element(element) = node else { continue };
                    self.budget.spend(document.attributes_of(element).len())?;
                    let leaves = leaves(document, STEP_ATTRIBUTE_ANY, element);
                    found.extend(leaves.filter(|&leaf| self.passes(step, leaf)));
                }
                _ => {
                    for child in children(document, node) {
                        self.budget.spend(1)?;
                        let child = NodeRef::Element(child);
                        if self.passes(step, child) {
                            found.push(child);
                        }
                    }
                }
            }
        }
        self.budget.spend(nodes.len())
    }

    fn passes(&self, step: WalkStep, node: NodeRef) -> bool {
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

    /// The nodes that pass predicates, each of which counts what the ones before it left.
    fn filter(
        &mut self,
        mut nodes: Vec<Node>,
        (at, count): (u32, u32),
        counts: bool,
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
                let keeps = self.within(tree, |verifier| verifier.keeps(predicate, node, counts))?;
                kept += usize::from(keeps);
            }
            nodes.truncate(kept);
            Ok(())
        });
        // Also past the work limit: the verifier goes on with the next query.
        self.focus = outer;
        kept.map(|()| nodes)
    }

    fn keeps(&mut self, predicate: u32, node: NodeRef, counts: bool) -> Decided {
        let condition = self.words[predicate as usize + 1];
        // Not one that varies with variables.
        let is_condition = self.words[predicate as usize] == VALUE_CONDITION;
        if let (true, false, NodeRef::Element(element)) = (is_condition, counts, node) {
            return self.remembered(condition, element);
        }
        Ok(match self.value(predicate, node)? {
            Evaluated::Number(number) => number == self.focus.position as f64,
            value => value.boolean(),
        })
    }
}
