//! The parsed query. Names are expanded: a prefix is replaced by its namespace URI.

use std::cmp::Ordering;

use super::transformation::Transformation;
use super::value::Computed;

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
    /// `*:name`, in any namespace or in none, by its local name
    Local(String),
}

/// The node test of a step.
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

/// A variable by its level: how many other variables are in scope where it is bound. So variables that are in
/// scope together differ, and a part of a query reads the same wherever it stands among its siblings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Variable(pub u32);

/// Where a path starts. The order decides how canonical text sorts paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Start {
    /// The context node of the predicate around the path.
    #[default]
    Context,
    /// The document node: in a predicate, that of the document of the node that is tested.
    Document,
    /// The nodes that a variable is bound to.
    Variable(Variable),
    /// The document node of the message, in a predicate of a query with local data.
    Message,
}

/// Without steps, the start itself: `.`, `/` or `$v`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Path {
    pub start: Start,
    pub steps: Vec<Step>,
}

impl Path {
    /// `.`: the context node.
    pub const CONTEXT: Path = Path::starting_at(Start::Context);
    /// `/`
    pub const DOCUMENT: Path = Path::starting_at(Start::Document);

    /// The start itself.
    pub const fn starting_at(start: Start) -> Path {
        Path { start, steps: Vec::new() }
    }

    /// Whether it is the start itself, or one attribute of the context node: then it is clear from the path alone that
    /// there is at most one node, or as many as a variable has.
    pub fn is_one_node(&self) -> bool {
        match self.steps.as_slice() {
            [] => true,
            [Step { axis: Axis::Child, node: Node::Attribute(NameTest::Name(_)), predicates }] => {
                self.start == Start::Context && predicates.is_empty()
            }
            _ => false,
        }
    }

    /// Whether it selects attributes or text nodes, from which no step of a path leads on.
    pub fn ends_in_leaf(&self) -> bool {
        self.steps.last().is_some_and(|last| !matches!(last.node, Node::Element(_)))
    }

    /// Whether its last step leads from an element of the path to a child, an attribute or a text node.
    pub fn leads_to_child(&self) -> bool {
        matches!(self.steps.as_slice(), [.., _, Step { axis: Axis::Child, .. }])
    }

    /// Makes `a[b]` of `a/b`: the parents of what it selects.
    pub fn turn_back(&mut self) {
        if let (Some(last), Some(parent)) = (self.steps.pop(), self.steps.last_mut()) {
            let below = Path { start: Start::Context, steps: vec![last] };
            parent.predicates.push(Predicate::Condition(Expr::Path(below, Test::Exists)));
        }
    }

    /// Calls `visit` with each name test in the path and its predicates.
    pub fn for_each_name_test(&self, visit: &mut impl FnMut(&NameTest)) {
        for step in &self.steps {
            if let Node::Element(test) | Node::Attribute(test) = &step.node {
                visit(test);
            }
            for predicate in &step.predicates {
                if let Predicate::Condition(expr) = predicate {
                    expr.for_each_name_test(visit);
                }
            }
        }
    }
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

    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
        }
    }

    /// The operator with its operands exchanged.
    pub fn mirrored(self) -> Operator {
        match self {
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
            same => same,
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
    /// `normalize-space()` of it is this string.
    Normalized(String),
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
    Computed(Box<Computed>),
}

impl Expr {
    pub const TRUE: Expr = Expr::And(Vec::new());
    pub const FALSE: Expr = Expr::Or(Vec::new());

    pub fn constant(holds: bool) -> Expr {
        if holds { Expr::TRUE } else { Expr::FALSE }
    }

    /// Whether it depends on the position of its context node.
    pub fn is_positional(&self) -> bool {
        match self {
            Expr::Path(..) => false,
            Expr::Not(operand) => operand.is_positional(),
            Expr::And(operands) | Expr::Or(operands) => operands.iter().any(Expr::is_positional),
            Expr::Computed(computed) => computed.value.is_positional(),
        }
    }

    /// Calls `visit` with each name test in the expression.
    pub fn for_each_name_test(&self, visit: &mut impl FnMut(&NameTest)) {
        match self {
            Expr::Path(path, _) => path.for_each_name_test(visit),
            Expr::Not(operand) => operand.for_each_name_test(visit),
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| operand.for_each_name_test(visit));
            }
            Expr::Computed(computed) => computed.value.for_each_name_test(visit),
        }
    }
}

/// A filter or a transformation. Its id is the hash of its canonical text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// The condition under which the query matches. A transformation matches if it binds an element.
    pub expr: Expr,
    pub transformation: Option<Box<Transformation>>,
}

impl Query {
    /// Calls `visit` with each name test of its paths.
    pub fn for_each_name_test(&self, visit: &mut impl FnMut(&NameTest)) {
        match &self.transformation {
            None => self.expr.for_each_name_test(visit),
            Some(transformation) => transformation.for_each_name_test(visit),
        }
    }

    pub fn filter(expr: Expr) -> Query {
        Query { expr, transformation: None }
    }

    pub fn transformation(transformation: Transformation) -> Query {
        Query { expr: transformation.filter(), transformation: Some(Box::new(transformation)) }
    }
}
