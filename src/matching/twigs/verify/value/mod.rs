//! Evaluates values on the document: XPath 1.0 by its definition, node set by node set.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | values |
//! | `steps.rs` | steps and their predicates |
//! | `axes.rs` | the nodes of an axis |
//! | `near.rs` | the same from one node, where a table of all nodes is not worthwhile |
//! | `axis_counts.rs` | how many they are, counted once per message |
//! | `calls.rs` | functions |
//! | `variables.rs` | variables, and the clauses that bind them |
//! | `compare.rs` | comparisons, conversions |
//! | `once.rs` | values that do not depend on the context |
//! | `items.rs` | sequences, and functions of them |
//! | `patterns.rs` | regular expressions, compiled once |
//! | `hash_join.rs` | nodes that are looked up by their values |
//! | `local_data.rs` | the records that a walk can meet |

mod axes;
mod axis_counts;
mod calls;
mod compare;
mod hash_join;
mod items;
mod local_data;
mod near;
mod once;
mod patterns;
mod steps;
mod variables;

use std::borrow::Cow;

pub(super) use axes::NodeTable;
pub(super) use axis_counts::AxisCounts;
pub(super) use hash_join::NodesByValue;
pub use items::Item;
pub(super) use once::Once;
pub(super) use patterns::Patterns;
pub(super) use variables::Variables;

use rustc_hash::FxHashSet;

use super::{Path, Verifier};
use crate::data::Node;
use crate::document::NodeRef;
use crate::matching::budget::{Decided, WorkLimit, any};
use crate::query::atomic::Atomic;
use crate::query::value::{Arithmetic, SetOperation};
use crate::segment::twig::values::*;
use crate::segment::twig::{
    FROM_CONTEXT, FROM_DOCUMENT, FROM_MESSAGE, FROM_VARIABLE, TEST_EXISTS, operator_of,
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
        let word = self.words[value as usize];
        let steps = word >> 8;
        if word & 0xFF != VALUE_WALK || steps == 0 || self.step_of_walk(value, steps - 1).predicates.1 > 0 {
            return Ok(self.value(value, context)?.boolean());
        }
        // One node of the last step is enough.
        let last = self.step_of_walk(value, steps - 1);
        let nodes = self.walk_nodes((value, steps - 1), context)?;
        any(nodes, |Node { tree, node }| {
            let first = self.within(tree, |verifier| verifier.axis_from(last, node, 1))?;
            Ok(!first.is_empty())
        })
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
                Evaluated::Nodes(nodes) => Evaluated::Nodes(self.filter(nodes, (at + 2, word >> 8))?),
                _ => Evaluated::Nodes(Vec::new()),
            },
            VALUE_WALK => Evaluated::Nodes(self.walk_nodes((at, word >> 8), context)?),
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
            VALUE_ONCE => self.once(operand(1))?,
            VALUE_AXIS_COUNT => Evaluated::Number(self.axis_count(operand(1), context)? as f64),
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

    /// A value that is the same at each context node of a document.
    fn once(&mut self, value: u32) -> Result<Evaluated<'a>, WorkLimit> {
        // In a record, `/` is another document.
        if self.in_record() {
            return self.value(value, NodeRef::Document);
        }
        if let Some(known) = self.memo.once.get(value) {
            self.budget.spend(1 + known.count())?;
            return Ok(known);
        }
        let found = self.value(value, NodeRef::Document)?;
        self.memo.once.insert(value, &found, self.most_kept());
        Ok(found)
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
        let Path { test, steps, .. } = self.decode(path);
        if steps == 0 && self.words[test as usize] & 0xFF == TEST_EXISTS {
            return Ok(vec![start]);
        }
        self.within(start.tree, |verifier| {
            let mut nodes = Vec::new();
            verifier.select(path, start.node, &mut nodes)?;
            Ok(verifier.nodes_here(nodes))
        })
    }
}
