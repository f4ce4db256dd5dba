//! Evaluates transformations tuple by tuple: nested loops over the clauses, each expression on the document.
//!
//! A clause runs once for each tuple of the clauses before it; nodes that do not depend on variables are found once for
//! a message. So a transformation costs its tuples, times what its expressions cost. The work limit bounds that, the
//! limit on bindings the tuples.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::data::Node;
use crate::document::NodeRef;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::{Evaluated, Item, Trees, Verifier};
use crate::query::ast::Variable;
use crate::query::flwor::{Content, Flwor, OrderKey};
use crate::query::transformation::Element;
use crate::query::value::Clause;
use crate::transform::output::{ConstructError, NodeCopier, TreeWriter};
use crate::transform::plan::Compiled;
use crate::transform::run::LimitExceeded;

/// Why there is no output.
pub enum TupleError {
    Limit(LimitExceeded),
    Construct(Box<ConstructError>),
}

impl From<WorkLimit> for TupleError {
    fn from(_: WorkLimit) -> TupleError {
        TupleError::Limit(LimitExceeded::Work)
    }
}

impl From<Box<ConstructError>> for TupleError {
    fn from(error: Box<ConstructError>) -> TupleError {
        TupleError::Construct(error)
    }
}

type Done = Result<(), TupleError>;

/// Evaluates one transformation on one message.
pub struct TupleEvaluator<'t, 'a> {
    verifier: Verifier<'a>,
    trees: Trees<'a>,
    writer: TreeWriter<'t>,
    /// The most tuples and nodes that are selected.
    limit: usize,
    selected: usize,
    /// The nodes of each expression that does not depend on variables.
    invariant: FxHashMap<u32, Rc<[Node]>>,
}

/// A tuple that waits to be sorted: its keys, and what its variables are bound to.
struct Sorted<'a> {
    keys: Vec<Key<'a>>,
    bound: Vec<(Variable, Evaluated<'a>)>,
}

/// The value of an order key.
enum Key<'a> {
    Empty,
    Text(Cow<'a, [u8]>),
    Number(f64),
}

impl<'t, 'a> TupleEvaluator<'t, 'a> {
    pub fn new(verifier: Verifier<'a>, writer: TreeWriter<'t>, limit: usize) -> TupleEvaluator<'t, 'a> {
        TupleEvaluator {
            trees: verifier.trees(),
            verifier,
            writer,
            limit,
            selected: 0,
            invariant: FxHashMap::default(),
        }
    }

    /// Writes the content.
    pub fn write(&mut self, content: &Content<Compiled>) -> Done {
        match content {
            Content::Text(text) => self.writer.text(text.as_bytes())?,
            Content::Element(element) => self.element(element)?,
            Content::Enclosed(content) => {
                self.writer.boundary();
                self.write(content)?;
                self.writer.boundary();
            }
            Content::Sequence(parts) => parts.iter().try_for_each(|part| self.write(part))?,
            Content::Value(value) => match self.verifier.value_at(value.twig, NodeRef::Document)? {
                Evaluated::Nodes(nodes) => {
                    self.select(nodes.len())?;
                    for node in nodes {
                        self.node(node)?;
                    }
                }
                Evaluated::Items(items) => {
                    self.select(items.len())?;
                    for item in items {
                        self.item(item)?;
                    }
                }
                value => self.writer.atomic(&value.text(self.trees))?,
            },
            Content::If(condition, yes, no) => {
                let holds = self.verifier.value_at(condition.twig, NodeRef::Document)?.boolean();
                self.write(if holds { yes } else { no })?;
            }
            Content::Flwor(flwor) => self.flwor(flwor)?,
        }
        Ok(())
    }

    fn item(&mut self, item: Item<'a>) -> Done {
        match item {
            Item::Node(node) => self.node(node)?,
            item => self.writer.atomic(&item.text(self.trees))?,
        }
        Ok(())
    }

    /// Writes a copy of a node.
    fn node(&mut self, Node { tree, node }: Node) -> Done {
        if tree.is_message() {
            return Ok(self.writer.node(node)?);
        }
        let (document, vocabulary, _) = self.trees.at(tree);
        Ok(self.writer.copy(&NodeCopier::new(document, vocabulary), node)?)
    }

    /// How many tuples clauses make, and pass.
    pub fn count(&mut self, clauses: &[Clause<Compiled>]) -> Result<usize, TupleError> {
        let mut count = 0;
        self.tuples(clauses, &mut |_| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    fn element(&mut self, element: &Element<Content<Compiled>, Content<Compiled>>) -> Done {
        self.writer.start_element(&element.name, &element.namespaces)?;
        for attribute in &element.attributes {
            self.writer.start_attribute(&attribute.name);
            attribute.value.iter().try_for_each(|part| self.write(part))?;
            self.writer.end_attribute();
        }
        element.content.iter().try_for_each(|part| self.write(part))?;
        Ok(self.writer.end_element()?)
    }

    fn flwor(&mut self, flwor: &Flwor<Compiled>) -> Done {
        if flwor.order.is_empty() {
            return self.tuples(&flwor.clauses, &mut |evaluator| evaluator.write(&flwor.result));
        }
        let mut sorted: Vec<Sorted<'a>> = Vec::new();
        self.tuples(&flwor.clauses, &mut |evaluator| {
            let keys = flwor.order.iter().map(|key| evaluator.key(key)).collect::<Result<_, _>>()?;
            let variables = flwor.clauses.iter().filter_map(Clause::variable);
            let bound = variables.map(|variable| (variable, evaluator.verifier.bound(variable))).collect();
            sorted.push(Sorted { keys, bound });
            Ok(())
        })?;
        self.verifier.spend(sorted.len() * sorted.len().checked_ilog2().unwrap_or(0) as usize)?;
        sorted.sort_by(|one, other| compare(&flwor.order, &one.keys, &other.keys));
        for Sorted { bound, .. } in sorted {
            bound.into_iter().for_each(|(variable, value)| self.verifier.bind(variable, value));
            self.write(&flwor.result)?;
        }
        Ok(())
    }

    /// Calls `pass` for each tuple, with the variables bound.
    fn tuples(&mut self, clauses: &[Clause<Compiled>], pass: &mut dyn FnMut(&mut Self) -> Done) -> Done {
        let Some((clause, rest)) = clauses.split_first() else {
            self.select(1)?;
            return pass(self);
        };
        match clause {
            Clause::For(variable, nodes) => {
                for &node in &*self.nodes(*nodes)? {
                    self.verifier.spend(1)?;
                    self.verifier.bind_node(*variable, node);
                    self.tuples(rest, pass)?;
                }
            }
            Clause::Let(variable, value) => {
                let value = self.verifier.value_at(value.twig, NodeRef::Document)?;
                self.verifier.bind(*variable, value);
                self.tuples(rest, pass)?;
            }
            Clause::Where(condition) => {
                if self.verifier.value_at(condition.twig, NodeRef::Document)?.boolean() {
                    self.tuples(rest, pass)?;
                }
            }
        }
        Ok(())
    }

    fn nodes(&mut self, value: Compiled) -> Result<Rc<[Node]>, TupleError> {
        if let Some(known) = self.invariant.get(&value.twig) {
            return Ok(known.clone());
        }
        let nodes: Rc<[Node]> = match self.verifier.value_at(value.twig, NodeRef::Document)? {
            Evaluated::Nodes(nodes) => nodes.into(),
            _ => [].into(),
        };
        if !value.varies {
            self.invariant.insert(value.twig, nodes.clone());
        }
        Ok(nodes)
    }

    fn key(&mut self, key: &OrderKey<Compiled>) -> Result<Key<'a>, TupleError> {
        let value = self.verifier.value_at(key.value.twig, NodeRef::Document)?;
        Ok(match value {
            Evaluated::Nodes(nodes) if nodes.is_empty() => Key::Empty,
            Evaluated::Items(items) => match items.into_iter().next() {
                None => Key::Empty,
                Some(item @ (Item::Node(_) | Item::Text(_))) => Key::Text(item.text(self.trees)),
                Some(item) => Key::Number(item.number(self.trees)),
            },
            value @ (Evaluated::Nodes(_) | Evaluated::Text(_)) => Key::Text(value.text(self.trees)),
            value => Key::Number(value.number(self.trees)),
        })
    }

    /// Counts tuples and nodes.
    fn select(&mut self, count: usize) -> Done {
        self.selected += count;
        match self.selected > self.limit {
            true => Err(TupleError::Limit(LimitExceeded::Nodes)),
            false => Ok(()),
        }
    }
}

/// The order of two tuples. Empty keys come before NaN, that before numbers and those before strings, or after them.
fn compare(order: &[OrderKey<Compiled>], one: &[Key<'_>], other: &[Key<'_>]) -> Ordering {
    for ((key, one), other) in order.iter().zip(one).zip(other) {
        let rank = |value: &Key<'_>| match value {
            Key::Empty => 0,
            Key::Number(number) if number.is_nan() => 1,
            Key::Number(_) => 2,
            Key::Text(_) => 3,
        };
        let mut ordering = rank(one).cmp(&rank(other));
        if key.is_empty_greatest {
            ordering = ordering.reverse();
        }
        let ordering = ordering.then_with(|| match (one, other) {
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            (Key::Number(one), Key::Number(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        });
        let ordering = if key.is_descending { ordering.reverse() } else { ordering };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}
