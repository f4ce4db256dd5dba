//! Variables, and the clauses that bind them: tuples of bindings by nested loops, the first clause outermost.

use super::Evaluated;
use super::items::Item;
use crate::data::Node;
use crate::document::NodeRef;
use crate::matching::budget::{Decided, any};
use crate::matching::twigs::verify::Verifier;
use crate::query::ast::Variable;
use crate::segment::twig::values::*;

/// The variables in scope, by level. Those of a higher level are left over from other scopes.
#[derive(Default)]
pub struct Variables<'a> {
    bound: Vec<Bound<'a>>,
}

/// What a variable is bound to.
#[derive(Clone)]
enum Bound<'a> {
    Node(Node),
    Value(Evaluated<'a>),
}

impl<'a> Variables<'a> {
    fn bind(&mut self, level: u32, bound: Bound<'a>) {
        let level = level as usize;
        if level >= self.bound.len() {
            self.bound.resize(level + 1, Bound::Value(Evaluated::Boolean(false)));
        }
        self.bound[level] = bound;
    }

    /// The nodes that a variable is bound to.
    pub fn nodes(&self, level: u32) -> &[Node] {
        match &self.bound[level as usize] {
            Bound::Node(node) => std::slice::from_ref(node),
            Bound::Value(Evaluated::Nodes(nodes)) => nodes,
            Bound::Value(_) => &[],
        }
    }

    pub(super) fn value(&self, level: u32) -> Evaluated<'a> {
        match &self.bound[level as usize] {
            Bound::Node(node) => Evaluated::Nodes(vec![*node]),
            Bound::Value(value) => value.clone(),
        }
    }
}

impl<'a> Verifier<'a> {
    pub fn bind_node(&mut self, Variable(level): Variable, node: Node) {
        self.variables.bind(level, Bound::Node(node));
    }

    pub fn bind(&mut self, Variable(level): Variable, value: Evaluated<'a>) {
        self.variables.bind(level, Bound::Value(value));
    }

    /// What a variable is bound to.
    pub fn bound(&self, Variable(level): Variable) -> Evaluated<'a> {
        self.variables.value(level)
    }

    /// Whether clauses let a tuple pass: `count` of them at `at`.
    pub(super) fn has_tuple(&mut self, (at, count): (u32, u32), context: NodeRef) -> Decided {
        if count == 0 {
            return Ok(true);
        }
        let (word, value) = (self.words[at as usize], self.words[at as usize + 1]);
        let (level, rest) = (word >> 8, (at + 2, count - 1));
        match word & 0xFF {
            CLAUSE_FOR => any(self.items(value, context)?, |item| {
                self.budget.spend(1)?;
                self.variables.bind(
                    level,
                    match item {
                        Item::Node(node) => Bound::Node(node),
                        item => Bound::Value(item.into()),
                    },
                );
                self.has_tuple(rest, context)
            }),
            CLAUSE_LET => {
                let value = self.value(value, context)?;
                self.variables.bind(level, Bound::Value(value));
                self.has_tuple(rest, context)
            }
            _ => Ok(self.value(value, context)?.boolean() && self.has_tuple(rest, context)?),
        }
    }
}
