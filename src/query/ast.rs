//! The parsed query. Names are expanded: prefixes are gone.

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

#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    pub axis: Axis,
    pub node: Node,
    pub predicates: Vec<Predicate>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Predicate {
    /// `[n]`: counts among what the step selects from one parent, after the predicates before it.
    /// `None` stands for a number that no position equals (`[0]`, `[1.5]`).
    Position(Option<u32>),
    Condition(Expr),
}

/// A path from the document node, or from the context node of the predicate it stands in.
/// A relative path with no steps is `.`.
#[derive(Clone, PartialEq, Debug)]
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

#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    Text(String),
    Number(f64),
}

/// How a node's string-value is tested. Over a path a test is existential: some node passes it.
#[derive(Clone, PartialEq, Debug)]
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

/// A boolean over the context node.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    Path(Path, Test),
}

/// A filter. Its id is the hash of its canonical text.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    pub expr: Expr,
}
