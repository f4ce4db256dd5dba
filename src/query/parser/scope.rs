//! Scopes: the prefixes that constructed elements bind, and the variables. Each is a stack: an inner
//! declaration hides an outer one.

use crate::query::ast::Variable;
use crate::query::value::Kind;

/// The prefixes in scope, innermost last; the default namespace has the empty prefix.
#[derive(Default)]
pub struct Prefixes<'a> {
    bindings: Vec<(&'a str, String)>,
}

impl<'a> Prefixes<'a> {
    /// The URI of a prefix, if a constructed element binds it.
    pub fn uri(&self, prefix: &str) -> Option<&str> {
        let innermost = self.bindings.iter().rev().find(|(bound, _)| *bound == prefix);
        innermost.map(|(_, uri)| uri.as_str())
    }

    /// Whether the prefix is bound to this URI already.
    pub fn binds(&self, prefix: &str, uri: &str) -> bool {
        self.uri(prefix).map_or(prefix.is_empty() && uri.is_empty(), |bound| bound == uri)
    }

    pub fn bind(&mut self, prefix: &'a str, uri: String) {
        self.bindings.push((prefix, uri));
    }

    /// Call at a start tag; pass the mark to `leave` at its end tag.
    pub fn mark(&self) -> usize {
        self.bindings.len()
    }

    pub fn leave(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }

    /// The declarations since a mark.
    pub fn since(&self, mark: usize) -> &[(&'a str, String)] {
        &self.bindings[mark..]
    }
}

/// The variables in scope, innermost last. Its place is the level of a variable.
#[derive(Default)]
pub struct Variables<'a> {
    bound: Vec<BoundVariable<'a>>,
}

#[derive(Clone, Copy)]
pub struct BoundVariable<'a> {
    pub name: &'a str,
    pub kind: Kind,
    /// Bound to one node, and not to a set of them.
    pub is_one_node: bool,
}

impl<'a> Variables<'a> {
    /// Brings a variable into scope, until `leave`.
    pub fn bind(&mut self, variable: BoundVariable<'a>) -> Variable {
        self.bound.push(variable);
        Variable(self.bound.len() as u32 - 1)
    }

    pub fn find(&self, name: &str) -> Option<(Variable, BoundVariable<'a>)> {
        let level = self.bound.iter().rposition(|bound| bound.name == name)?;
        Some((Variable(level as u32), self.bound[level]))
    }

    /// The innermost variable.
    pub fn last(&self) -> Option<BoundVariable<'a>> {
        self.bound.last().copied()
    }

    pub fn is_one_node(&self, Variable(level): Variable) -> bool {
        self.bound[level as usize].is_one_node
    }

    /// The number of variables in scope: the level of the next one.
    pub fn mark(&self) -> usize {
        self.bound.len()
    }

    /// Ends the scope of those that came after the mark.
    pub fn leave(&mut self, mark: usize) {
        self.bound.truncate(mark);
    }
}
