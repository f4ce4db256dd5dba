//! Values: expressions that are evaluated on the document, for filters beyond paths with one test.
//!
//! ```text
//! count(//item) > 3          Compare(Greater, Call(Count, [Nodes(//item)]), Literal(3))
//! //b/ancestor::a[last()]    Walk { start: Nodes(//b), steps: [ancestor::a[Call(Last)]] }
//! (a | b)[1]                 Filter(Union([Nodes(a), Nodes(b)]), [Literal(1)])
//! ```
//!
//! Parts that are simple paths or conditions stay what they are (`Nodes`, `Condition`), so that they are
//! matched by the same code as in other queries.

use super::ast::{Axis, Expr, Literal, NameTest, Node, Operator, Path, Predicate, Step, Variable};
use super::atomic::Atomic;
use super::constant;
use super::envelope::leads_to_envelope;
use super::necessary;
use super::own_name::{self, OwnName};
pub use super::signature::{FUNCTIONS, FirstArgument, Function, Signature};

/// A condition that is evaluated: XPath's `boolean()` of a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Computed {
    pub value: Value,
    /// A condition that holds wherever this one does. The index looks for it; the value decides.
    pub necessary: Expr,
    /// The equivalent name test of the context node, if it tests nothing else.
    pub own_name: Option<OwnName>,
}

impl Computed {
    pub fn new(value: Value) -> Computed {
        let necessary = necessary::of_value(&value);
        let own_name = own_name::of_value(&value);
        Computed { value, necessary, own_name }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    Literal(Literal),
    /// A boolean.
    Condition(Expr),
    /// The nodes of a path.
    Nodes(Path),
    Union(Vec<Value>),
    /// Nodes in document order, counted from 1 by the predicates: `(a | b)[2]`.
    Filter(Box<Value>, Vec<Value>),
    Walk(Box<Walk>),
    Call(Function, Vec<Value>),
    Arithmetic(Arithmetic, Box<Value>, Box<Value>),
    Negative(Box<Value>),
    Compare(Operator, Box<Value>, Box<Value>),
    /// A variable that is not bound to nodes; one that is starts a path.
    Variable(Variable, Kind),
    /// `some $a in x, $b in y satisfies z`: whether the clauses let a tuple of bindings pass.
    Some(Vec<Clause>),
    /// `a except b`, `a intersect b`
    Sets(SetOperation, Box<Value>, Box<Value>),
    /// `(a, 'b', 3)`: the items of all, in this order.
    Sequence(Vec<Value>),
    /// A value for each node of another: `a/(b, c)`, `a/string()`. If it is nodes, all of them in document order.
    Each(Box<Value>, Box<Value>),
    /// `if (condition) then a else b`
    If(Box<[Value; 3]>),
    /// `a castable as xs:date`; with `?` also if there is no `a`.
    Castable {
        target: Atomic,
        may_be_empty: bool,
        operand: Box<Value>,
    },
}

/// A clause: clauses make tuples of bindings, one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Clause<V = Value> {
    /// A tuple for each of the nodes, or of the items of a sequence in a quantified expression.
    For(Variable, V),
    Let(Variable, V),
    /// Drops the tuples for which it is false.
    Where(V),
}

impl<V> Clause<V> {
    /// The same with its expression replaced.
    pub fn map<W>(&self, replace: &mut impl FnMut(&V) -> W) -> Clause<W> {
        match self {
            Clause::For(variable, value) => Clause::For(*variable, replace(value)),
            Clause::Let(variable, value) => Clause::Let(*variable, replace(value)),
            Clause::Where(value) => Clause::Where(replace(value)),
        }
    }

    pub fn value(&self) -> &V {
        match self {
            Clause::For(_, value) | Clause::Let(_, value) | Clause::Where(value) => value,
        }
    }

    pub fn value_mut(&mut self) -> &mut V {
        match self {
            Clause::For(_, value) | Clause::Let(_, value) | Clause::Where(value) => value,
        }
    }

    /// The variable that it binds.
    pub fn variable(&self) -> Option<Variable> {
        match self {
            Clause::For(variable, _) | Clause::Let(variable, _) => Some(*variable),
            Clause::Where(_) => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum SetOperation {
    Except,
    Intersect,
}

impl SetOperation {
    pub fn name(self) -> &'static str {
        match self {
            SetOperation::Except => "except",
            SetOperation::Intersect => "intersect",
        }
    }
}

/// Steps from the nodes of a value, along any axis.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Walk {
    pub start: Value,
    pub steps: Vec<WalkStep>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WalkStep {
    pub axis: WalkAxis,
    pub test: NodeTest,
    /// A number is a position; other values are used as booleans.
    pub predicates: Vec<Value>,
}

impl Walk {
    /// The walk that selects the same nodes as a path. No axis leads to the envelope: that step stays in the start.
    pub fn of_path(path: &Path) -> Walk {
        let first = usize::from(path.steps.first().is_some_and(leads_to_envelope));
        let (start, steps) = path.steps.split_at(first);
        let start = Path { start: path.start, steps: start.to_vec() };
        Walk { start: Value::Nodes(start), steps: walk_steps(steps) }
    }
}

/// The steps of a path as those of a walk.
pub fn walk_steps(steps: &[Step]) -> Vec<WalkStep> {
    let mut walked = Vec::with_capacity(steps.len());
    for Step { axis, node, predicates } in steps {
        if *axis == Axis::Descendant {
            let (axis, test) = (WalkAxis::DescendantOrSelf, NodeTest::Any);
            walked.push(WalkStep { axis, test, predicates: Vec::new() });
        }
        let axis = if let Node::Attribute(_) = node { WalkAxis::Attribute } else { WalkAxis::Child };
        let predicates = predicates.iter().cloned().map(Value::of_predicate).collect();
        walked.push(WalkStep { axis, test: NodeTest::of_node(node.clone()), predicates });
    }
    walked
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum WalkAxis {
    Child,
    Descendant,
    DescendantOrSelf,
    Attribute,
    Itself,
    Parent,
    Ancestor,
    AncestorOrSelf,
    FollowingSibling,
    PrecedingSibling,
    Following,
    Preceding,
}

impl WalkAxis {
    pub const ALL: [WalkAxis; 12] = [
        WalkAxis::Child,
        WalkAxis::Descendant,
        WalkAxis::DescendantOrSelf,
        WalkAxis::Attribute,
        WalkAxis::Itself,
        WalkAxis::Parent,
        WalkAxis::Ancestor,
        WalkAxis::AncestorOrSelf,
        WalkAxis::FollowingSibling,
        WalkAxis::PrecedingSibling,
        WalkAxis::Following,
        WalkAxis::Preceding,
    ];

    pub fn name(self) -> &'static str {
        match self {
            WalkAxis::Child => "child",
            WalkAxis::Descendant => "descendant",
            WalkAxis::DescendantOrSelf => "descendant-or-self",
            WalkAxis::Attribute => "attribute",
            WalkAxis::Itself => "self",
            WalkAxis::Parent => "parent",
            WalkAxis::Ancestor => "ancestor",
            WalkAxis::AncestorOrSelf => "ancestor-or-self",
            WalkAxis::FollowingSibling => "following-sibling",
            WalkAxis::PrecedingSibling => "preceding-sibling",
            WalkAxis::Following => "following",
            WalkAxis::Preceding => "preceding",
        }
    }

    pub fn named(name: &str) -> Option<WalkAxis> {
        WalkAxis::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// Whether positions count from the end of the document.
    pub fn is_reverse(self) -> bool {
        matches!(
            self,
            WalkAxis::Parent
                | WalkAxis::Ancestor
                | WalkAxis::AncestorOrSelf
                | WalkAxis::PrecedingSibling
                | WalkAxis::Preceding
        )
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeTest {
    /// `node()`
    Any,
    /// Elements, or attributes on the attribute axis.
    Name(NameTest),
    Text,
    Comment,
    /// `processing-instruction()`, with its target if one is given.
    Instruction(Option<String>),
}

impl NodeTest {
    /// The test of a step of a path.
    pub fn of_node(node: Node) -> NodeTest {
        match node {
            Node::Element(test) | Node::Attribute(test) => NodeTest::Name(test),
            Node::Text => NodeTest::Text,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Arithmetic {
    pub const ALL: [Arithmetic; 5] =
        [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Divide, Arithmetic::Modulo];

    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "div",
            Arithmetic::Modulo => "mod",
        }
    }

    pub fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
            Arithmetic::Modulo => left % right,
        }
    }
}

/// The four types of XPath 1.0, and what XPath 2.0 adds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Nodes,
    Number,
    Text,
    Boolean,
    /// `xs:date`, evaluated as a number: see `moment`.
    Date,
    DateTime,
    /// Nodes, numbers, strings and booleans in any order, or what is known only when it is evaluated.
    Sequence,
}

impl Kind {
    pub fn is_moment(self) -> bool {
        matches!(self, Kind::Date | Kind::DateTime)
    }

    /// Whether there can be several items.
    pub fn is_many(self) -> bool {
        matches!(self, Kind::Nodes | Kind::Sequence)
    }
}

impl Value {
    /// A predicate of a path as one of a walk.
    pub fn of_predicate(predicate: Predicate) -> Value {
        match predicate {
            Predicate::Position(position) => Value::Literal(Literal::Number(position.map_or(0.0, f64::from))),
            Predicate::Condition(Expr::Computed(computed)) if computed.value.kind() == Kind::Boolean => {
                computed.value
            }
            Predicate::Condition(expr) => Value::Condition(expr),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Value::Literal(Literal::Text(_)) => Kind::Text,
            Value::Literal(Literal::Number(_)) | Value::Arithmetic(..) | Value::Negative(_) => Kind::Number,
            Value::Condition(_) | Value::Compare(..) | Value::Some(_) | Value::Castable { .. } => {
                Kind::Boolean
            }
            Value::Variable(_, kind) => *kind,
            Value::Nodes(_) | Value::Union(_) | Value::Walk(_) | Value::Sets(..) => Kind::Nodes,
            Value::Filter(start, _) => start.kind(),
            Value::Sequence(_) => Kind::Sequence,
            Value::Each(_, each) if each.kind() == Kind::Nodes => Kind::Nodes,
            Value::Each(..) => Kind::Sequence,
            Value::If(parts) if parts[1].kind() == parts[2].kind() => parts[1].kind(),
            Value::If(_) => Kind::Sequence,
            Value::Call(function, _) => function.signature().kind,
        }
    }

    /// Whether it is a date that is invalid for every message.
    pub fn is_no_moment(&self) -> bool {
        matches!(constant::constant(self, &|_| false), Some(constant::Constant::Number(moment)) if moment.is_nan())
    }

    /// Whether it depends on the position of its context node: on `position()` or `last()` outside inner predicates.
    pub fn is_positional(&self) -> bool {
        match self {
            Value::Literal(_) | Value::Nodes(_) | Value::Variable(..) => false,
            Value::Some(clauses) => clauses.iter().any(|clause| clause.value().is_positional()),
            Value::Condition(expr) => expr.is_positional(),
            Value::Union(values) | Value::Sequence(values) => values.iter().any(Value::is_positional),
            Value::If(values) => values.iter().any(Value::is_positional),
            Value::Filter(start, _) | Value::Each(start, _) => start.is_positional(),
            Value::Walk(walk) => walk.start.is_positional(),
            Value::Call(function, arguments) => {
                matches!(function, Function::Position | Function::Last)
                    || arguments.iter().any(Value::is_positional)
            }
            Value::Negative(operand) | Value::Castable { operand, .. } => operand.is_positional(),
            Value::Arithmetic(_, left, right)
            | Value::Compare(_, left, right)
            | Value::Sets(_, left, right) => left.is_positional() || right.is_positional(),
        }
    }

    /// Whether it depends on the context node, not only on its position.
    pub fn uses_context(&self) -> bool {
        match self {
            Value::Literal(_) => false,
            Value::Call(function, arguments) => {
                *function == Function::Lang || arguments.iter().any(Value::uses_context)
            }
            Value::Negative(operand) => operand.uses_context(),
            Value::Arithmetic(_, left, right) | Value::Compare(_, left, right) => {
                left.uses_context() || right.uses_context()
            }
            _ => true,
        }
    }

    /// Whether a predicate selects by position: it is a number or may be one, or depends on the position.
    pub fn selects_by_position(&self) -> bool {
        matches!(self.kind(), Kind::Number | Kind::Sequence) || self.is_positional()
    }

    /// Calls `visit` with each name test in the value.
    pub fn for_each_name_test(&self, visit: &mut impl FnMut(&NameTest)) {
        match self {
            Value::Literal(_) | Value::Variable(..) => {}
            Value::Some(clauses) => {
                clauses.iter().for_each(|clause| clause.value().for_each_name_test(visit));
            }
            Value::Condition(expr) => expr.for_each_name_test(visit),
            Value::Nodes(path) => path.for_each_name_test(visit),
            Value::Union(values) | Value::Call(_, values) | Value::Sequence(values) => {
                values.iter().for_each(|value| value.for_each_name_test(visit));
            }
            Value::If(values) => values.iter().for_each(|value| value.for_each_name_test(visit)),
            Value::Filter(start, predicates) => {
                start.for_each_name_test(visit);
                predicates.iter().for_each(|value| value.for_each_name_test(visit));
            }
            Value::Walk(walk) => {
                walk.start.for_each_name_test(visit);
                for step in &walk.steps {
                    if let NodeTest::Name(test) = &step.test {
                        visit(test);
                    }
                    step.predicates.iter().for_each(|value| value.for_each_name_test(visit));
                }
            }
            Value::Negative(operand) | Value::Castable { operand, .. } => operand.for_each_name_test(visit),
            Value::Arithmetic(_, left, right)
            | Value::Compare(_, left, right)
            | Value::Sets(_, left, right)
            | Value::Each(left, right) => {
                left.for_each_name_test(visit);
                right.for_each_name_test(visit);
            }
        }
    }
}
