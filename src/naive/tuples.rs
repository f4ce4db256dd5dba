//! Transformations tuple by tuple, by their definition: all tuples are made before the first is used.

use std::cmp::Ordering;

use super::values::{Evaluated, Focus};
use super::{Evaluation, MESSAGE};
use crate::data::Node;
use crate::query::ast::Variable;
use crate::query::flwor::{Content, Flwor};
use crate::query::value::{Clause, Value};
use crate::transform::output::{ConstructError, NodeCopier, TreeWriter};

/// A tuple: the values of its variables, outer ones too.
type Tuple = Vec<(Variable, Evaluated)>;

impl Evaluation<'_> {
    pub fn write(
        &mut self,
        content: &Content,
        writer: &mut TreeWriter<'_>,
    ) -> Result<(), Box<ConstructError>> {
        match content {
            Content::Text(text) => writer.text(text.as_bytes()),
            Content::Element(element) => {
                writer.start_element(&element.name, &element.namespaces)?;
                for attribute in &element.attributes {
                    writer.start_attribute(&attribute.name);
                    attribute.value.iter().try_for_each(|part| self.write(part, writer))?;
                    writer.end_attribute();
                }
                element.content.iter().try_for_each(|part| self.write(part, writer))?;
                writer.end_element()
            }
            Content::Enclosed(content) => {
                writer.boundary();
                self.write(content, writer)?;
                writer.boundary();
                Ok(())
            }
            Content::Sequence(parts) => parts.iter().try_for_each(|part| self.write(part, writer)),
            Content::Value(value) => self.top(value).items().into_iter().try_for_each(|item| match item {
                Evaluated::Nodes(nodes) => nodes.into_iter().try_for_each(|Node { tree, node }| {
                    let copier = NodeCopier::new(self.document(tree), self.vocabulary(tree));
                    writer.copy(&copier, node)
                }),
                item => writer.atomic(&self.as_text(item)),
            }),
            Content::If(condition, yes, no) => {
                let chosen = if self.top(condition).boolean() { yes } else { no };
                self.write(chosen, writer)
            }
            Content::Flwor(flwor) => {
                let outer = self.bound.clone();
                for tuple in self.ordered_tuples(flwor) {
                    self.set(tuple);
                    self.write(&flwor.result, writer)?;
                }
                self.set(outer);
                Ok(())
            }
        }
    }

    fn top(&mut self, value: &Value) -> Evaluated {
        self.value(value, Focus::single(MESSAGE))
    }

    fn set(&mut self, tuple: Tuple) {
        self.bound = tuple;
        self.known.clear();
    }

    fn ordered_tuples(&mut self, flwor: &Flwor) -> Vec<Tuple> {
        let mut tuples = vec![self.bound.clone()];
        for clause in &flwor.clauses {
            let mut next = Vec::new();
            for tuple in tuples {
                self.set(tuple.clone());
                let with = |variable: Variable, value| [tuple.as_slice(), &[(variable, value)]].concat();
                match clause {
                    Clause::For(variable, nodes) => {
                        let nodes = self.top(nodes).into_nodes();
                        next.extend(
                            nodes.into_iter().map(|node| with(*variable, Evaluated::Nodes(vec![node]))),
                        );
                    }
                    Clause::Let(variable, value) => next.push(with(*variable, self.top(value))),
                    Clause::Where(condition) => {
                        if self.top(condition).boolean() {
                            next.push(tuple);
                        }
                    }
                }
            }
            tuples = next;
        }
        // The least significant key first: the sort is stable.
        for key in flwor.order.iter().rev() {
            let mut keyed: Vec<(Option<Evaluated>, Tuple)> = tuples
                .into_iter()
                .map(|tuple| {
                    self.set(tuple.clone());
                    (self.top(&key.value).items().into_iter().next(), tuple)
                })
                .collect();
            keyed.sort_by(|(one, _), (other, _)| {
                let ordering = self.compare_keys(one.as_ref(), other.as_ref(), key.is_empty_greatest);
                if key.is_descending { ordering.reverse() } else { ordering }
            });
            tuples = keyed.into_iter().map(|(_, tuple)| tuple).collect();
        }
        tuples
    }

    /// The first items of two keys: nothing, then NaN, then numbers, then strings; the kinds the other way round with
    /// `empty greatest`.
    fn compare_keys(&self, one: Option<&Evaluated>, other: Option<&Evaluated>, greatest: bool) -> Ordering {
        let is_text = |key: &Evaluated| matches!(key, Evaluated::Nodes(_) | Evaluated::Text(_));
        let kind = |key: Option<&Evaluated>| match key {
            None => 0,
            Some(key) if is_text(key) => 3,
            Some(key) => {
                if self.as_number(key).is_nan() {
                    1
                } else {
                    2
                }
            }
        };
        let kinds = if greatest { kind(other).cmp(&kind(one)) } else { kind(one).cmp(&kind(other)) };
        kinds.then_with(|| match (one, other) {
            (Some(one), Some(other)) if is_text(one) => {
                self.as_text(one.clone()).cmp(&self.as_text(other.clone()))
            }
            (Some(one), Some(other)) => {
                self.as_number(one).partial_cmp(&self.as_number(other)).unwrap_or(Ordering::Equal)
            }
            _ => Ordering::Equal,
        })
    }
}
