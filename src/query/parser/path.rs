//! Paths: steps, axes, name tests, predicates.

use super::hints;
use super::lexer::Token;
use super::refusal::Refused;
use super::{Operand, Parser};
use crate::query::ast::{Axis, Name, NameTest, Node, Path, Predicate, Step};

/// The axis of the next step. A `//` applies to the step after it; `.` between them changes nothing:
/// `a//./b` is `a//b`.
#[derive(Clone, Copy)]
pub(super) struct StepAxis {
    axis: Axis,
    /// `descendant::a[2]` counts over all descendants, where `//a[2]` counts per parent.
    counts_all: bool,
}

impl StepAxis {
    const CHILD: StepAxis = StepAxis { axis: Axis::Child, counts_all: false };
    const DESCENDANT: StepAxis = StepAxis { axis: Axis::Descendant, counts_all: false };

    /// The axis that `/` or `//` means; `None` for other tokens.
    pub(super) fn from_token(token: Token) -> Option<StepAxis> {
        match token {
            Token::Slash => Some(StepAxis::CHILD),
            Token::DoubleSlash => Some(StepAxis::DESCENDANT),
            _ => None,
        }
    }
}

impl Parser<'_> {
    /// `path = "/" | ("/" | "//")? step (("/" | "//") step)*`
    ///
    /// At the top level the context is the document node, so a relative path is absolute there.
    #[inline]
    pub(super) fn path(&mut self) -> Result<Path, Refused> {
        let leading = StepAxis::from_token(self.lexer.token);
        let absolute = leading.is_some() || self.predicates == 0;
        if let (None, 0, Some(variable)) = (leading, self.predicates, self.construction.variable)
            && self.at_step()
        {
            let reason = hints::context(variable);
            return Err(self.refuse(self.lexer.start, "context", reason));
        }
        let mut path = Path { absolute, steps: Vec::new() };
        if leading.is_some() {
            let alone = self.lexer.token == Token::Slash;
            self.lexer.advance()?;
            if alone && !self.at_step() {
                self.no_further_step()?;
                return Ok(path);
            }
        }
        self.steps(&mut path, leading.unwrap_or(StepAxis::CHILD))?;
        Ok(path)
    }

    /// Parses steps; `step_axis` is the axis of the first.
    pub(super) fn steps(&mut self, path: &mut Path, mut step_axis: StepAxis) -> Result<(), Refused> {
        loop {
            self.count()?;
            let start = self.lexer.start;
            if let Some(node) = self.node(&mut step_axis)? {
                if path.steps.last().is_some_and(|last| !matches!(last.node, Node::Element(_))) {
                    let reason = "no step can follow an attribute or `text()`, because they have no children";
                    return Err(self.refuse(start, "step-after-leaf", reason));
                }
                path.steps.push(Step { axis: step_axis.axis, node, predicates: Vec::new() });
                if self.lexer.token == Token::OpenBracket {
                    let last = path.steps.len() - 1;
                    self.predicates(&mut path.steps[last].predicates, step_axis)?;
                }
                step_axis = StepAxis::CHILD;
            }
            match self.lexer.token {
                Token::Slash => {}
                Token::DoubleSlash => step_axis.axis = Axis::Descendant,
                _ if step_axis.axis == Axis::Descendant => {
                    let reason = "`//` must lead to a name, `*`, `@…` or `text()`";
                    return Err(self.refuse(start, "node-test", reason));
                }
                _ => return Ok(()),
            }
            self.lexer.advance()?;
        }
    }

    /// `node = "." | "@"? name-test | "text()" | axis "::" …`; `None` for a step to the context node itself.
    #[inline]
    fn node(&mut self, step_axis: &mut StepAxis) -> Result<Option<Node>, Refused> {
        match self.lexer.token {
            Token::Name => {
                let (name, start) = (self.lexer.word, self.lexer.start);
                self.lexer.advance()?;
                match self.lexer.token {
                    Token::DoubleColon => self.named_axis(name, start, step_axis),
                    Token::OpenParen => self.node_type(name, start).map(Some),
                    _ => Ok(Some(Node::Element(no_namespace(name)))),
                }
            }
            Token::At => {
                self.lexer.advance()?;
                self.attribute().map(Some)
            }
            Token::Dot => {
                self.lexer.advance()?;
                self.no_predicate("`.`")?;
                Ok(None)
            }
            Token::DotDot => Err(self.refuse(self.lexer.start, "axis", hints::axis("parent"))),
            _ => self.child().map(Some),
        }
    }

    /// Parses a step whose axis is written out, at the `::`.
    fn named_axis(
        &mut self,
        axis: &str,
        start: usize,
        step_axis: &mut StepAxis,
    ) -> Result<Option<Node>, Refused> {
        self.lexer.advance()?;
        match axis {
            "child" => self.child().map(Some),
            "attribute" => self.attribute().map(Some),
            "descendant" => {
                *step_axis = StepAxis { axis: Axis::Descendant, counts_all: true };
                self.child().map(Some)
            }
            "descendant-or-self" => {
                step_axis.axis = Axis::Descendant;
                self.any_node(axis)
            }
            "self" => self.any_node(axis),
            _ => Err(self.refuse(start, "axis", hints::axis(axis))),
        }
    }

    fn predicates(&mut self, predicates: &mut Vec<Predicate>, step_axis: StepAxis) -> Result<(), Refused> {
        while self.lexer.token == Token::OpenBracket {
            let start = self.lexer.start;
            let predicate = self.predicate()?;
            if step_axis.counts_all && matches!(predicate, Predicate::Position(_)) {
                return Err(self.refuse(start, "axis", hints::DESCENDANT_POSITION));
            }
            predicates.push(predicate);
        }
        Ok(())
    }

    /// `predicate = "[" or-expr "]"`; a number is a position.
    fn predicate(&mut self) -> Result<Predicate, Refused> {
        self.count()?;
        self.enter()?;
        self.predicates += 1;
        self.lexer.advance()?;
        let start = self.lexer.start;
        let predicate = match self.or_expr()? {
            Operand::Number(value) => Predicate::Position(position(value)),
            operand => Predicate::Condition(self.boolean(operand, start)?),
        };
        self.expect(Token::CloseBracket, "`]`")?;
        self.predicates -= 1;
        self.leave();
        Ok(predicate)
    }

    /// A child step after its axis: a name test or `text()`.
    fn child(&mut self) -> Result<Node, Refused> {
        if self.lexer.token == Token::Name && self.lexer.follower() == Some(b'(') {
            let (name, start) = (self.lexer.word, self.lexer.start);
            self.lexer.advance()?;
            return self.node_type(name, start);
        }
        Ok(Node::Element(self.name_test()?))
    }

    fn attribute(&mut self) -> Result<Node, Refused> {
        if self.lexer.token == Token::Name && self.lexer.follower() == Some(b'(') {
            let reason = "a name or `*` is expected after `@`";
            return Err(self.refuse(self.lexer.start, "node-test", reason));
        }
        Ok(Node::Attribute(self.name_test()?))
    }

    fn name_test(&mut self) -> Result<NameTest, Refused> {
        let test = match self.lexer.token {
            Token::Star => NameTest::Any,
            Token::Name => no_namespace(self.lexer.word),
            Token::Prefixed => {
                let prefix = self.lexer.word;
                let uri = self.uri(prefix, self.lexer.start)?;
                let (test, repeated) = (in_namespace(uri, self.lexer.local), uri.len());
                self.charge_expansion(repeated, self.lexer.start)?;
                test
            }
            Token::Expanded => in_namespace(self.lexer.word, self.lexer.local),
            _ => return Err(self.no_step()),
        };
        self.lexer.advance()?;
        Ok(test)
    }

    /// The namespace of a prefix: bound by an enclosing constructed element, or by the subscription.
    pub(super) fn uri(&self, prefix: &str, at: usize) -> Result<&str, Refused> {
        let found = self.construction.scope.uri(prefix).or_else(|| self.namespaces.uri(prefix));
        found.ok_or_else(|| {
            let reason = format!(
                "the prefix `{prefix}` is not bound to a namespace; bind it in the namespaces of the query"
            );
            self.refuse(at, "unbound-prefix", reason)
        })
    }

    /// Parses `text()`, at its parenthesis; other node types are refused.
    fn node_type(&mut self, name: &str, start: usize) -> Result<Node, Refused> {
        if name != "text" {
            let (code, reason) = hints::node_type(name);
            return Err(self.refuse(start, code, reason));
        }
        self.lexer.advance()?;
        self.expect(Token::CloseParen, "`)`")?;
        Ok(Node::Text)
    }

    /// Parses `node()` after `self::` or `descendant-or-self::`.
    fn any_node(&mut self, axis: &str) -> Result<Option<Node>, Refused> {
        if !self.lexer.is("node") || self.lexer.follower() != Some(b'(') {
            return Err(self.refuse(self.lexer.start, "axis", hints::axis_test(axis)));
        }
        self.lexer.advance()?;
        self.lexer.advance()?;
        self.expect(Token::CloseParen, "`)`")?;
        self.no_predicate("`node()`")?;
        Ok(None)
    }

    /// Whether the token can begin a step.
    fn at_step(&self) -> bool {
        matches!(
            self.lexer.token,
            Token::Name
                | Token::Prefixed
                | Token::Expanded
                | Token::Star
                | Token::At
                | Token::Dot
                | Token::DotDot
        )
    }

    #[cold]
    fn no_step(&self) -> Refused {
        let (code, reason) = hints::no_step(&self.lexer);
        self.refuse(self.lexer.start, code, reason)
    }

    fn no_predicate(&self, what: &str) -> Result<(), Refused> {
        if self.lexer.token != Token::OpenBracket {
            return Ok(());
        }
        let reason = format!("a predicate is not allowed after {what}; put it on the step before");
        Err(self.refuse(self.lexer.start, "filter-expression", reason))
    }
}

fn no_namespace(local: &str) -> NameTest {
    NameTest::Name(Name { uri: String::new(), local: local.to_string() })
}

fn in_namespace(uri: &str, local: Option<&str>) -> NameTest {
    match local {
        None => NameTest::AnyIn(uri.to_string()),
        Some(local) => NameTest::Name(Name { uri: uri.to_string(), local: local.to_string() }),
    }
}

/// The position that a number means, if it is a positive integer.
fn position(value: f64) -> Option<u32> {
    let rounded = value as u32;
    (rounded > 0 && f64::from(rounded) == value).then_some(rounded)
}
