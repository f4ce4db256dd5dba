//! Paths: steps, axes, node tests, predicates.
//!
//! A path is built as a simple one (`ast::Path`: child, `//`, attribute and text steps) for as long as its steps
//! allow it. From the first other step on it is a walk along any axes (`value::Walk`).

use super::expression::Operand;
use super::hints;
use super::lexer::Token;
use super::nested_step::{is_joinable, nodes_of};
use super::refusal::Refused;
use super::{Parser, is_node_type};
use crate::query::ast::{Axis, Expr, Node, Path, Predicate, Start, Step};
use crate::query::envelope::leads_to_envelope;
use crate::query::own_name::narrow;
use crate::query::value::{Kind, NodeTest, Value, Walk, WalkAxis, WalkStep};

/// A path under construction.
pub(super) enum Route {
    Simple(Path),
    Walk(Walk),
}

/// A step as it is written, without its predicates.
struct WrittenStep {
    axis: WalkAxis,
    test: NodeTest,
}

/// A predicate as it is used.
enum WrittenPredicate {
    /// `[n]` or a condition that does not depend on the position.
    Simple(Predicate),
    /// A computed number, or a condition that depends on the position.
    Positional(Value),
}

impl WrittenPredicate {
    fn into_value(self) -> Value {
        match self {
            WrittenPredicate::Simple(predicate) => Value::of_predicate(predicate),
            WrittenPredicate::Positional(value) => value,
        }
    }
}

impl Route {
    fn walk(&mut self) -> &mut Walk {
        if let Route::Simple(path) = self {
            let start = Value::Nodes(std::mem::take(path));
            *self = Route::Walk(Walk { start, steps: Vec::new() });
        }
        match self {
            Route::Walk(walk) => walk,
            Route::Simple(_) => unreachable!("it was just replaced"),
        }
    }

    pub(super) fn into_operand<'a>(self) -> Operand<'a> {
        match self {
            Route::Simple(path) => Operand::Path(path),
            Route::Walk(Walk { start, steps }) if steps.is_empty() => Operand::Value(start),
            Route::Walk(walk) => Operand::Value(Value::Walk(Box::new(walk))),
        }
    }

    /// Adds the `descendant-or-self::node()` that a `//` stands for.
    pub(super) fn descend(&mut self) {
        let step = WalkStep { axis: WalkAxis::DescendantOrSelf, test: NodeTest::Any, predicates: Vec::new() };
        self.walk().steps.push(step);
    }
}

impl<'a> Parser<'a> {
    /// `path = "/" | ("/" | "//")? step (("/" | "//") step)*`
    ///
    /// At the top level the context is the document node, so a relative path is absolute there.
    #[inline]
    pub(super) fn path(&mut self) -> Result<Operand<'a>, Refused> {
        let leading = matches!(self.lexer.token, Token::Slash | Token::DoubleSlash);
        if let (false, 0, Some(variable)) = (leading, self.predicates, self.construction.variable)
            && self.at_step()
        {
            let reason = hints::context(variable);
            return Err(self.refuse(self.lexer.start, "context", reason));
        }
        let path = if leading { Path::DOCUMENT } else { self.context_path() };
        let descends = self.lexer.token == Token::DoubleSlash;
        if leading {
            self.lexer.advance()?;
            if !descends && !self.at_step() {
                return match self.lexer.token {
                    Token::OpenBracket | Token::Slash | Token::DoubleSlash => {
                        Err(self.refuse(self.lexer.start, "filter-expression", hints::FILTER_EXPRESSION))
                    }
                    _ => Ok(Operand::Path(path)),
                };
            }
        }
        self.steps(Route::Simple(path), descends)
    }

    /// The context node: at the top level the document node.
    pub(super) fn context_path(&self) -> Path {
        if self.predicates == 0 { Path::DOCUMENT } else { Path::CONTEXT }
    }

    /// Parses predicates and steps after nodes in parentheses, a function call or a variable.
    pub(super) fn path_from(&mut self, nodes: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let nodes = self.filtered(nodes)?;
        let descends = match self.lexer.token {
            Token::Slash => false,
            Token::DoubleSlash => true,
            _ => return Ok(nodes),
        };
        let at = self.lexer.start;
        let nodes = nodes_of(nodes);
        if nodes.kind() != Kind::Nodes {
            return Err(self.refuse(at, "filter-expression", hints::FILTER_EXPRESSION));
        }
        self.lexer.advance()?;
        let paths = match nodes {
            Operand::Path(path) => return self.steps(Route::Simple(path), descends),
            Operand::Union(paths) => paths,
            nodes => {
                let start = nodes.into_value();
                return self.steps(Route::Walk(Walk { start, steps: Vec::new() }), descends);
            }
        };
        // `(a | b)/c` is `a/c | b/c`.
        Ok(match self.steps_from(Route::Simple(Path::CONTEXT), descends)? {
            Operand::Path(rest) if is_joinable(&paths, &rest) => {
                Operand::Union(self.joined(&paths, &[rest], at)?)
            }
            Operand::Union(rests) if rests.iter().all(|rest| is_joinable(&paths, rest)) => {
                Operand::Union(self.joined(&paths, &rests, at)?)
            }
            rest => Operand::Value(self.starting_from(rest.into_value(), &paths, at)?),
        })
    }

    /// Steps that are parsed before it is known what they start from: their paths are relative.
    fn steps_from(&mut self, route: Route, descends: bool) -> Result<Operand<'a>, Refused> {
        self.predicates += 1;
        let steps = self.steps(route, descends);
        self.predicates -= 1;
        steps
    }

    /// Parses the predicates of nodes in parentheses: positions count all of them, in document order.
    pub(super) fn filtered(&mut self, nodes: Operand<'a>) -> Result<Operand<'a>, Refused> {
        let mut nodes = nodes;
        while self.lexer.token == Token::OpenBracket {
            let at = self.lexer.start;
            let outer = self.in_envelope;
            if let Operand::Path(path) = &nodes {
                self.in_envelope = self.leads_to_envelope(path);
            }
            let predicate = self.predicate()?;
            self.in_envelope = outer;
            let is_position = match &predicate {
                WrittenPredicate::Simple(predicate) => matches!(predicate, Predicate::Position(_)),
                WrittenPredicate::Positional(value) => !value.uses_context(),
            };
            if nodes.kind() == Kind::Sequence && !is_position {
                return Err(self.refuse(at, "filter-expression", hints::SEQUENCE_POSITION));
            }
            nodes = match (nodes, predicate) {
                (Operand::Path(mut path), WrittenPredicate::Simple(predicate @ Predicate::Condition(_)))
                    if !path.steps.is_empty() =>
                {
                    let last = path.steps.len() - 1;
                    add_predicate(&mut path.steps[last], predicate);
                    Operand::Path(path)
                }
                (Operand::Value(Value::Filter(start, mut predicates)), predicate) => {
                    predicates.push(predicate.into_value());
                    Operand::Value(Value::Filter(start, predicates))
                }
                (nodes, predicate) => {
                    let start = Box::new(nodes.into_value());
                    Operand::Value(Value::Filter(start, vec![predicate.into_value()]))
                }
            };
        }
        Ok(nodes)
    }

    /// Parses steps; `descends` tells whether `//` stands before the first.
    fn steps(&mut self, route: Route, descends: bool) -> Result<Operand<'a>, Refused> {
        let outer = self.in_envelope;
        if let Route::Simple(path) = &route {
            self.in_envelope = self.leads_to_envelope(path);
        }
        let nodes = self.further_steps(route, descends);
        self.in_envelope = outer;
        nodes
    }

    /// Whether nodes that a path selects are of the envelope.
    fn leads_to_envelope(&self, path: &Path) -> bool {
        match path.start {
            Start::Context => self.in_envelope,
            Start::Document | Start::Message => path.steps.first().is_some_and(leads_to_envelope),
            Start::Variable(_) => false,
        }
    }

    fn further_steps(&mut self, mut route: Route, mut descends: bool) -> Result<Operand<'a>, Refused> {
        loop {
            self.count()?;
            if self.at_nested_step() {
                return self.nested_step(route, descends);
            }
            let step = self.written_step()?;
            let is_bare = self.lexer.token != Token::OpenBracket;
            match (&mut route, step) {
                // `a/./b` is `a/b`.
                (_, WrittenStep { axis: WalkAxis::Itself, test: NodeTest::Any, .. }) if is_bare => {}
                (_, WrittenStep { axis: WalkAxis::DescendantOrSelf, test: NodeTest::Any, .. }) if is_bare => {
                    descends = true;
                }
                (Route::Simple(path), WrittenStep { axis: WalkAxis::Parent, test: NodeTest::Any, .. })
                    if is_bare && !descends && path.leads_to_child() =>
                {
                    path.turn_back()
                }
                (Route::Simple(path), WrittenStep { axis, test, .. })
                    if !path.ends_in_leaf() && is_simple(axis, &test) =>
                {
                    let node = simple_node(axis, test);
                    let counts_all = axis == WalkAxis::Descendant;
                    let deep = descends || counts_all;
                    let step_axis = if deep { Axis::Descendant } else { Axis::Child };
                    path.steps.push(Step { axis: step_axis, node, predicates: Vec::new() });
                    if !is_bare {
                        self.step_predicates(&mut route, axis, descends)?;
                    }
                    descends = false;
                }
                (_, WrittenStep { axis, test, .. }) => {
                    if descends {
                        route.descend();
                    }
                    descends = false;
                    let mut step = WalkStep { axis, test, predicates: Vec::new() };
                    while self.lexer.token == Token::OpenBracket {
                        add_walk_predicate(&mut step, self.predicate()?);
                    }
                    route.walk().steps.push(step);
                }
            }
            match self.lexer.token {
                Token::Slash => {}
                Token::DoubleSlash => descends = true,
                _ => {
                    if descends {
                        route.descend();
                    }
                    return Ok(route.into_operand());
                }
            }
            self.lexer.advance()?;
        }
    }

    /// Parses the predicates of the last step of a simple path. From the first one on that counts otherwise
    /// than simple paths do, the step is part of a walk.
    fn step_predicates(&mut self, route: &mut Route, axis: WalkAxis, descends: bool) -> Result<(), Refused> {
        while self.lexer.token == Token::OpenBracket {
            let predicate = self.predicate()?;
            match (&mut *route, predicate) {
                (Route::Simple(path), WrittenPredicate::Simple(predicate))
                    if axis != WalkAxis::Descendant || matches!(predicate, Predicate::Condition(_)) =>
                {
                    let last = path.steps.len() - 1;
                    add_predicate(&mut path.steps[last], predicate);
                }
                (Route::Simple(path), predicate) => {
                    let last = path.steps.pop();
                    let Some(Step { node, predicates, .. }) = last else { return Ok(()) };
                    if descends {
                        route.descend();
                    }
                    let mut predicates: Vec<Value> =
                        predicates.into_iter().map(Value::of_predicate).collect();
                    predicates.push(predicate.into_value());
                    route.walk().steps.push(WalkStep { axis, test: NodeTest::of_node(node), predicates });
                }
                (Route::Walk(walk), predicate) => {
                    let last = walk.steps.len() - 1;
                    walk.steps[last].predicates.push(predicate.into_value());
                }
            }
        }
        Ok(())
    }

    /// `step = "." | ".." | "@"? node-test | axis "::" node-test`
    #[inline]
    fn written_step(&mut self) -> Result<WrittenStep, Refused> {
        let written = |axis, test| WrittenStep { axis, test };
        match self.lexer.token {
            Token::Name => {
                let (name, start) = (self.lexer.word, self.lexer.start);
                self.lexer.advance()?;
                match self.lexer.token {
                    Token::DoubleColon => {
                        let Some(axis) = WalkAxis::named(name) else {
                            return Err(self.refuse(start, "axis", hints::axis(name)));
                        };
                        self.lexer.advance()?;
                        Ok(written(axis, self.node_test(axis)?))
                    }
                    Token::OpenParen => Ok(written(WalkAxis::Child, self.node_type(name, start)?)),
                    _ => Ok(written(WalkAxis::Child, NodeTest::Name(self.element_name(name, start)?))),
                }
            }
            Token::At => {
                self.lexer.advance()?;
                Ok(written(WalkAxis::Attribute, self.node_test(WalkAxis::Attribute)?))
            }
            Token::Dot | Token::DotDot => {
                let axis = if self.lexer.token == Token::Dot { WalkAxis::Itself } else { WalkAxis::Parent };
                self.lexer.advance()?;
                Ok(WrittenStep { axis, test: NodeTest::Any })
            }
            _ => Ok(written(WalkAxis::Child, NodeTest::Name(self.name_test(WalkAxis::Child)?))),
        }
    }

    /// `predicate = "[" or-expr "]"`
    fn predicate(&mut self) -> Result<WrittenPredicate, Refused> {
        self.count()?;
        self.enter()?;
        self.predicates += 1;
        self.lexer.advance()?;
        let operand = self.or_expr()?;
        self.expect(Token::CloseBracket, "`]`")?;
        self.predicates -= 1;
        self.leave();
        Ok(match operand {
            Operand::Number(value) => WrittenPredicate::Simple(Predicate::Position(position(value))),
            Operand::Value(value) if value.selects_by_position() => WrittenPredicate::Positional(value),
            Operand::Boolean(expr) if expr.is_positional() => {
                WrittenPredicate::Positional(Value::of_predicate(Predicate::Condition(expr)))
            }
            operand => WrittenPredicate::Simple(Predicate::Condition(operand.into_condition())),
        })
    }

    /// Whether an expression in parentheses or a function stands where a step is expected.
    #[inline(always)]
    fn at_nested_step(&self) -> bool {
        self.lexer.token == Token::OpenParen
            || (self.lexer.at_call() && !is_node_type(self.lexer.word)
                || self.lexer.at_call() && self.lexer.token == Token::Prefixed)
    }

    /// Whether the token can begin a step.
    fn at_step(&self) -> bool {
        matches!(
            self.lexer.token,
            Token::Name
                | Token::Prefixed
                | Token::Expanded
                | Token::AnyPrefix
                | Token::Star
                | Token::At
                | Token::Dot
                | Token::DotDot
                | Token::OpenParen
        )
    }

    #[cold]
    pub(super) fn no_step(&self) -> Refused {
        let (code, reason) = hints::no_step(&self.lexer);
        self.refuse(self.lexer.start, code, reason)
    }
}

/// Whether a step of a simple path selects the same nodes.
#[inline]
fn is_simple(axis: WalkAxis, test: &NodeTest) -> bool {
    matches!(
        (axis, test),
        (WalkAxis::Child | WalkAxis::Descendant, NodeTest::Name(_) | NodeTest::Text)
            | (WalkAxis::Attribute, NodeTest::Name(_))
    )
}

/// The step of a simple path for an axis and a test.
#[inline]
fn simple_node(axis: WalkAxis, test: NodeTest) -> Node {
    match test {
        NodeTest::Name(test) if axis == WalkAxis::Attribute => Node::Attribute(test),
        NodeTest::Name(test) => Node::Element(test),
        _ => Node::Text,
    }
}

/// Adds a predicate to a step; its conditions on the name become part of the name test.
fn add_predicate(step: &mut Step, predicate: Predicate) {
    let counted = step.predicates.iter().any(|predicate| matches!(predicate, Predicate::Position(_)));
    match (&mut step.node, predicate) {
        (Node::Element(_) | Node::Attribute(_), Predicate::Condition(condition)) if !counted => {
            let of_elements = matches!(step.node, Node::Element(_));
            let (Node::Element(test) | Node::Attribute(test)) = &mut step.node else { return };
            let left = narrow(test, of_elements, condition);
            if left != Expr::TRUE {
                step.predicates.push(Predicate::Condition(left));
            }
        }
        (_, predicate) => step.predicates.push(predicate),
    }
}

fn add_walk_predicate(step: &mut WalkStep, predicate: WrittenPredicate) {
    let counted = step.predicates.iter().any(Value::selects_by_position);
    match (&mut step.test, predicate) {
        (NodeTest::Name(test), WrittenPredicate::Simple(Predicate::Condition(condition))) if !counted => {
            let left = narrow(test, step.axis != WalkAxis::Attribute, condition);
            if left != Expr::TRUE {
                step.predicates.push(Value::of_predicate(Predicate::Condition(left)));
            }
        }
        (_, predicate) => step.predicates.push(predicate.into_value()),
    }
}

/// The position that a number means, if it is a positive integer.
fn position(value: f64) -> Option<u32> {
    let rounded = value as u32;
    (rounded > 0 && f64::from(rounded) == value).then_some(rounded)
}
