//! The parsed query. Names are expanded: prefixes are gone.

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
    /// `[n]`: counts among what the step selects from one parent, after the predicates before it.
    /// `None` stands for a number that no position equals (`[0]`, `[1.5]`).
    Position(Option<u32>),
    Condition(Expr),
}

/// A path from the document node, or from the context node of the predicate it stands in.
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
    /// As it is written.
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

/// Numbers in IEEE 754's total order: what is equal is written alike, and operands can be sorted.
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

/// How a node's string-value is tested. Over a path a test is existential: some node passes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Test {
    /// Always passes: the node is there.
    Exists,
    /// `= 'x'`, `!= 'x'` compare strings; every other pair compares numbers.
    Compare(Operator, Literal),
    /// Looks at the *first* node of the path only, as XPath converts a node set to a string
    /// (an empty set is the empty string).
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
    /// Whether it matches; a transformation's is that it binds an element.
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
