//! The parsed query. Names are expanded: a prefix is replaced by its namespace URI.

use std::cmp::Ordering;

use super::transformation::Transformation;

/// An expanded name; an empty `uri` is "no namespace".
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name {
    pub uri: String,
    pub local: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NameTest {
    /// `*`
    Any,
    /// `p:*`, by its URI
    AnyIn(String),
    Name(Name),
}

/// What a step selects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    Element(NameTest),
    Attribute(NameTest),
    Text,
}

/// How a step moves: `Child` is `/`, `Descendant` is `//`, that is
/// `/descendant-or-self::node()/` before a child, attribute or text step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    Child,
    Descendant,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Step {
    pub axis: Axis,
    pub node: Node,
    pub predicates: Vec<Predicate>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Predicate {
    /// `[n]`: the position among the nodes that the step selects from one parent and that pass the
    /// predicates before this one. `None` is a number that is no position (`[0]`, `[1.5]`).
    Position(Option<u32>),
    Condition(Expr),
}

/// A path from the document node, or from the context node of the predicate that contains it.
/// A relative path with no steps is `.`, an absolute one is `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Path {
    pub absolute: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// The operator in XPath.
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Literal {
    Text(String),
    Number(f64),
}

/// Orders numbers by IEEE 754's total order, so that operands can be sorted and equal literals have the
/// same text.
impl Ord for Literal {
    fn cmp(&self, other: &Literal) -> Ordering {
        match (self, other) {
            (Literal::Text(a), Literal::Text(b)) => a.cmp(b),
            (Literal::Text(_), Literal::Number(_)) => Ordering::Less,
            (Literal::Number(_), Literal::Text(_)) => Ordering::Greater,
            (Literal::Number(a), Literal::Number(b)) => a.total_cmp(b),
        }
    }
}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Literal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Literal {}

impl Literal {
    /// XPath's `number()` of the literal.
    pub fn number(&self) -> f64 {
        match self {
            Literal::Text(text) => crate::query::number::number(text.as_bytes()),
            Literal::Number(number) => *number,
        }
    }
}

/// A test of a node's string-value. A path passes a test if one of its nodes does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Test {
    /// Always passes: the node exists.
    Exists,
    /// `= 'x'`, `!= 'x'` compare strings; every other pair compares numbers.
    Compare(Operator, Literal),
    /// Tests the *first* node of the path only, because XPath converts a node set to a string so (an
    /// empty set to the empty string).
    Contains(String),
    StartsWith(String),
}

/// A boolean over the context node. `And` of nothing is true, `Or` of nothing false.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Expr {
    Path(Path, Test),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
}

/// A filter or a transformation. Its id is the hash of its canonical text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// The condition under which the query matches. A transformation matches if it binds an element.
    pub expr: Expr,
    pub transformation: Option<Box<Transformation>>,
}

impl Query {
    pub fn filter(expr: Expr) -> Query {
        Query { expr, transformation: None }
    }

    pub fn transformation(transformation: Transformation) -> Query {
        Query { expr: transformation.filter(), transformation: Some(Box::new(transformation)) }
    }
}
