//! Tokens → AST, by recursive descent. The grammar stands in docs/language.md; the functions
//! below carry its names and its order.
//!
//! Nothing here recurses without `enter`, so depth is bounded whatever the text.

use super::ast::{Axis, Expr, Literal, Name, NameTest, Node, Operator, Path, Predicate, Query, Step, Test};
use super::hints;
use super::lexer::{Lexer, Local, Token};
use super::namespaces::Namespaces;
use super::number::number;
use super::refusal::{Refused, refuse, refuse_limit};

/// Bytes of a query, as written and with what unions and prefixes repeat.
pub const TEXT_LIMIT: usize = 64 << 10;
/// Parentheses, brackets and function calls inside one another.
pub const DEPTH_LIMIT: usize = 64;
/// Steps, predicates and operands.
pub const NODES_LIMIT: usize = 4096;

pub fn parse(text: &str, namespaces: &Namespaces) -> Result<Query, Refused> {
    if text.len() > TEXT_LIMIT {
        return Err(refuse_limit(text, 0, "text-limit", "the query is too long", text.len(), TEXT_LIMIT));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        start: 0,
        namespaces,
        predicates: 0,
        depth: 0,
        nodes: 0,
        repeated: text.len(),
    };
    parser.advance()?;
    if parser.token == Token::End {
        return Err(refuse(text, 0, "empty", "the query is empty"));
    }
    let expr = parser.condition()?;
    match parser.token {
        Token::End => Ok(Query { expr }),
        _ => Err(parser.unexpected("the end of the query")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token to be looked at next, and where it starts.
    token: Token<'a>,
    start: usize,
    namespaces: &'a Namespaces,
    /// How many predicates we are inside of.
    predicates: usize,
    depth: usize,
    nodes: usize,
    /// Bytes of the query, plus those that unions and prefixes stand for.
    repeated: usize,
}

/// What an expression stands for before it is known how it is used.
enum Operand<'a> {
    Path(Path),
    Union(Vec<Path>),
    Boolean(Expr),
    Text(&'a str),
    Number(f64),
}

impl<'a> Parser<'a> {
    /// `or-expr`, used as a boolean.
    fn condition(&mut self) -> Result<Expr, Refused> {
        let start = self.start;
        let operand = self.or_expr()?;
        self.boolean(operand, start)
    }

    /// `or-expr = and-expr ("or" and-expr)*`
    fn or_expr(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.start;
        let first = self.and_expr()?;
        if self.token != Token::Name("or") {
            return Ok(first);
        }
        let mut operands = vec![self.boolean(first, start)?];
        while self.token == Token::Name("or") {
            self.advance()?;
            let start = self.start;
            let operand = self.and_expr()?;
            operands.push(self.boolean(operand, start)?);
        }
        Ok(Operand::Boolean(Expr::Or(operands)))
    }

    /// `and-expr = comparison ("and" comparison)*`
    fn and_expr(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.start;
        let first = self.comparison()?;
        if self.token != Token::Name("and") {
            return Ok(first);
        }
        let mut operands = vec![self.boolean(first, start)?];
        while self.token == Token::Name("and") {
            self.advance()?;
            let start = self.start;
            let operand = self.comparison()?;
            operands.push(self.boolean(operand, start)?);
        }
        Ok(Operand::Boolean(Expr::And(operands)))
    }

    /// `comparison = union (operator union)?`, a path on one side and a literal on the other.
    fn comparison(&mut self) -> Result<Operand<'a>, Refused> {
        let left = self.union()?;
        let Token::Compare(operator) = self.token else { return Ok(left) };
        let at = self.start;
        self.advance()?;
        let right = self.union()?;
        let (paths, operator, literal) = match (left, right) {
            (Operand::Boolean(_), _) | (_, Operand::Boolean(_)) => {
                let reason = "a condition cannot be compared; join conditions with `and`, `or`, `not()`";
                return Err(self.refuse(at, "boolean-comparison", reason));
            }
            (Operand::Path(_) | Operand::Union(_), Operand::Path(_) | Operand::Union(_)) => {
                let reason = "comparing a path with a path is not supported; compare it with a literal";
                return Err(self.refuse(at, "path-comparison", reason));
            }
            (paths @ (Operand::Path(_) | Operand::Union(_)), literal) => (paths, operator, literal),
            (literal, paths @ (Operand::Path(_) | Operand::Union(_))) => (paths, mirrored(operator), literal),
            _ => {
                let reason = "two literals are compared; one side must be a path";
                return Err(self.refuse(at, "literal-comparison", reason));
            }
        };
        let literal = match literal {
            Operand::Number(value) => Literal::Number(value),
            Operand::Text(value) => Literal::Text(value.to_string()),
            _ => unreachable!("paths and conditions were told apart above"),
        };
        match paths {
            Operand::Union(paths) => {
                if let Literal::Text(value) = &literal {
                    self.repeat(value.len() * (paths.len() - 1), at)?;
                }
                let compare = |path| Expr::Path(path, Test::Compare(operator, literal.clone()));
                Ok(Operand::Boolean(Expr::Or(paths.into_iter().map(compare).collect())))
            }
            Operand::Path(path) => {
                Ok(Operand::Boolean(Expr::Path(path, Test::Compare(operator, literal))))
            }
            _ => unreachable!("paths and literals were told apart above"),
        }
    }

    /// `union = primary ("|" primary)*`
    fn union(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.start;
        let first = self.primary()?;
        if self.token != Token::Pipe {
            return Ok(first);
        }
        let mut paths = Vec::new();
        self.join(&mut paths, first, start)?;
        while self.token == Token::Pipe {
            self.advance()?;
            let start = self.start;
            let next = self.primary()?;
            self.join(&mut paths, next, start)?;
        }
        Ok(Operand::Union(paths))
    }

    fn join(&self, paths: &mut Vec<Path>, operand: Operand<'a>, start: usize) -> Result<(), Refused> {
        match operand {
            Operand::Path(path) => paths.push(path),
            Operand::Union(more) => paths.extend(more),
            _ => return Err(self.refuse(start, "union-operand", "`|` joins paths; join conditions with `or`")),
        }
        Ok(())
    }

    /// `primary = literal | "-"* number | "(" or-expr ")" | function | path`
    #[inline]
    fn primary(&mut self) -> Result<Operand<'a>, Refused> {
        self.count()?;
        match self.token {
            Token::Text(value) => {
                self.advance()?;
                Ok(Operand::Text(value))
            }
            Token::Number(digits) => {
                self.advance()?;
                Ok(Operand::Number(number(digits.as_bytes())))
            }
            Token::Minus => self.negative(),
            Token::OpenParen => self.parenthesised(),
            Token::Variable(name) => self.variable(name),
            Token::Name("for" | "let") if self.lexer.peek_past_space() == Some(b'$') => {
                Err(self.refuse(self.start, "transformation", hints::TRANSFORMATION))
            }
            Token::Compare(Operator::Less) => {
                Err(self.refuse(self.start, "transformation", hints::TRANSFORMATION))
            }
            Token::Name(name) if self.lexer.peek_past_space() == Some(b'(') && !is_node_type(name) => {
                self.function(name)
            }
            Token::Prefixed(_, Local::Name(name)) if self.lexer.peek_past_space() == Some(b'(') => {
                Err(self.unknown_function(name))
            }
            _ => Ok(Operand::Path(self.path()?)),
        }
    }

    fn negative(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.start;
        let mut sign = 1.0;
        while self.token == Token::Minus {
            sign = -sign;
            self.advance()?;
        }
        let Token::Number(digits) = self.token else {
            return Err(self.refuse(start, "arithmetic", "arithmetic is not supported; `-` stands before a number only"));
        };
        self.advance()?;
        Ok(Operand::Number(sign * number(digits.as_bytes())))
    }

    fn parenthesised(&mut self) -> Result<Operand<'a>, Refused> {
        self.enter()?;
        self.advance()?;
        let operand = self.or_expr()?;
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        self.no_further_step()?;
        Ok(operand)
    }

    /// `$doc` and `$msg`: the document node.
    fn variable(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        if !matches!(name, "doc" | "msg") {
            let reason = format!("the variable `${name}` is not supported; only `$doc` and `$msg` have a meaning");
            return Err(self.refuse(self.start, "variable", reason));
        }
        self.advance()?;
        let mut path = Path { absolute: true, steps: Vec::new() };
        match self.token {
            Token::Slash | Token::DoubleSlash => {
                let descendant = self.token == Token::DoubleSlash;
                self.advance()?;
                self.steps(&mut path, descendant)?;
            }
            _ => self.no_further_step()?,
        }
        Ok(Operand::Path(path))
    }

    fn function(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        let kind = match name {
            "not" | "contains" | "starts-with" | "true" | "false" => name,
            _ => return Err(self.unknown_function(name)),
        };
        self.enter()?;
        self.advance()?;
        self.advance()?;
        let expr = match kind {
            "not" => Expr::Not(Box::new(self.condition()?)),
            "true" => Expr::And(Vec::new()),
            "false" => Expr::Or(Vec::new()),
            _ => {
                let path = self.haystack()?;
                self.expect(Token::Comma, "`,` and a string")?;
                let needle = self.needle()?;
                let test = if kind == "contains" { Test::Contains(needle) } else { Test::StartsWith(needle) };
                Expr::Path(path, test)
            }
        };
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        self.no_further_step()?;
        Ok(Operand::Boolean(expr))
    }

    /// The first argument of `contains()` and `starts-with()`.
    fn haystack(&mut self) -> Result<Path, Refused> {
        let start = self.start;
        match self.or_expr()? {
            Operand::Path(path) => Ok(path),
            Operand::Union(_) => {
                let reason = "a union is not supported here: only its first node would count; use `or`";
                Err(self.refuse(start, "argument", reason))
            }
            _ => Err(self.refuse(start, "argument", "the first argument must be a path")),
        }
    }

    /// Their second.
    fn needle(&mut self) -> Result<String, Refused> {
        let start = self.start;
        match self.or_expr()? {
            Operand::Text(value) => Ok(value.to_string()),
            Operand::Path(_) | Operand::Union(_) => {
                let reason = "comparing a path with a path is not supported; the second argument must be a string";
                Err(self.refuse(start, "path-comparison", reason))
            }
            _ => Err(self.refuse(start, "argument", "the second argument must be a string literal")),
        }
    }

    /// `path = "/" | ("/" | "//")? step (("/" | "//") step)*`
    ///
    /// The context of the top level is the document node: there, a relative path is absolute.
    #[inline]
    fn path(&mut self) -> Result<Path, Refused> {
        let mut path = Path { absolute: self.predicates == 0, steps: Vec::new() };
        let mut descendant = false;
        match self.token {
            Token::Slash => {
                path.absolute = true;
                self.advance()?;
                if !self.at_step() {
                    self.no_further_step()?;
                    return Ok(path);
                }
            }
            Token::DoubleSlash => {
                path.absolute = true;
                descendant = true;
                self.advance()?;
            }
            _ => {}
        }
        self.steps(&mut path, descendant)?;
        Ok(path)
    }

    /// The steps from here on. `descendant`: a `//` waits for the step it belongs to; `.` leaves
    /// it waiting, for `a//./b` is `a//b`.
    fn steps(&mut self, path: &mut Path, mut descendant: bool) -> Result<(), Refused> {
        let mut last = self.start;
        loop {
            self.count()?;
            match self.step(&mut descendant)? {
                Some(_) if matches!(path.steps.last(), Some(Step { node: Node::Attribute(_) | Node::Text, .. })) => {
                    let reason = "no step can follow an attribute or `text()`: they have no children";
                    return Err(self.refuse(last, "step-after-leaf", reason));
                }
                Some(step) => path.steps.push(step),
                None => {}
            }
            last = self.start;
            match self.token {
                Token::Slash => {}
                Token::DoubleSlash => descendant = true,
                _ => break,
            }
            self.advance()?;
        }
        if descendant {
            let reason = "`//` must lead to a name, `*`, `@…` or `text()`";
            return Err(self.refuse(last, "node-test", reason));
        }
        Ok(())
    }

    /// `step = "." | node predicate*`, axes abbreviated or in words. None for a step that does
    /// not move. Takes a waiting `//`, or leaves one behind (`descendant-or-self::node()`).
    #[inline]
    fn step(&mut self, descendant: &mut bool) -> Result<Option<Step>, Refused> {
        let start = self.start;
        // `descendant::a[2]` counts over all descendants, `//a[2]` per parent.
        let mut counts_per_parent = true;
        let node = match self.token {
            Token::Dot => {
                self.advance()?;
                self.no_predicate("`.`")?;
                return Ok(None);
            }
            Token::DotDot => return Err(self.refuse(start, "axis", hints::axis("parent"))),
            Token::At => {
                self.advance()?;
                self.attribute()?
            }
            Token::Name(name) => {
                self.advance()?;
                match self.token {
                    Token::DoubleColon => {
                        self.advance()?;
                        match name {
                            "child" => self.child()?,
                            "attribute" => self.attribute()?,
                            "descendant" => {
                                *descendant = true;
                                counts_per_parent = false;
                                self.child()?
                            }
                            "self" | "descendant-or-self" => {
                                *descendant |= name == "descendant-or-self";
                                self.any_node(name)?;
                                self.no_predicate("`node()`")?;
                                return Ok(None);
                            }
                            _ => return Err(self.refuse(start, "axis", hints::axis(name))),
                        }
                    }
                    Token::OpenParen => self.node_type(name, start)?,
                    _ => Node::Element(no_namespace(name)),
                }
            }
            _ => self.child()?,
        };
        let mut step = Step { axis: Axis::Child, node, predicates: Vec::new() };
        if std::mem::take(descendant) {
            step.axis = Axis::Descendant;
        }
        while self.token == Token::OpenBracket {
            let start = self.start;
            let predicate = self.predicate()?;
            if !counts_per_parent && matches!(predicate, Predicate::Position(_)) {
                return Err(self.refuse(start, "axis", hints::DESCENDANT_POSITION));
            }
            step.predicates.push(predicate);
        }
        Ok(Some(step))
    }

    /// `predicate = "[" or-expr "]"`; a number is a position.
    fn predicate(&mut self) -> Result<Predicate, Refused> {
        self.count()?;
        self.enter()?;
        self.predicates += 1;
        self.advance()?;
        let start = self.start;
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
        let start = self.start;
        if let Token::Name(name) = self.token
            && self.lexer.peek_past_space() == Some(b'(')
        {
            self.advance()?;
            return self.node_type(name, start);
        }
        Ok(Node::Element(self.name_test()?))
    }

    fn attribute(&mut self) -> Result<Node, Refused> {
        if matches!(self.token, Token::Name(_)) && self.lexer.peek_past_space() == Some(b'(') {
            let reason = "after `@` stands a name or `*`";
            return Err(self.refuse(self.start, "node-test", reason));
        }
        Ok(Node::Attribute(self.name_test()?))
    }

    fn name_test(&mut self) -> Result<NameTest, Refused> {
        let test = match self.token {
            Token::Star => NameTest::Any,
            Token::Name(name) => no_namespace(name),
            Token::Prefixed(prefix, local) => {
                let Some(uri) = self.namespaces.uri(prefix) else {
                    let reason = format!("the prefix `{prefix}` is not bound to a namespace");
                    return Err(self.refuse(self.start, "unbound-prefix", reason));
                };
                self.repeat(uri.len(), self.start)?;
                in_namespace(uri, local)
            }
            Token::Expanded(uri, local) => in_namespace(uri, local),
            _ => return Err(self.unexpected("a step")),
        };
        self.advance()?;
        Ok(test)
    }

    /// What stands before the parenthesis of `text()`; here at the parenthesis.
    fn node_type(&mut self, name: &str, start: usize) -> Result<Node, Refused> {
        if name != "text" {
            let (code, reason) = hints::node_type(name);
            return Err(self.refuse(start, code, reason));
        }
        self.advance()?;
        self.expect(Token::CloseParen, "`)`")?;
        Ok(Node::Text)
    }

    /// `node()` behind the axes that lead nowhere new.
    fn any_node(&mut self, axis: &str) -> Result<(), Refused> {
        if self.token != Token::Name("node") || self.lexer.peek_past_space() != Some(b'(') {
            return Err(self.refuse(self.start, "axis", hints::axis_test(axis)));
        }
        self.advance()?;
        self.advance()?;
        self.expect(Token::CloseParen, "`)`")
    }

    /// Whether the token can begin a step.
    fn at_step(&self) -> bool {
        matches!(
            self.token,
            Token::Name(_)
                | Token::Prefixed(..)
                | Token::Expanded(..)
                | Token::Star
                | Token::At
                | Token::Dot
                | Token::DotDot
        )
    }

    fn boolean(&self, operand: Operand<'a>, start: usize) -> Result<Expr, Refused> {
        match operand {
            Operand::Path(path) => Ok(Expr::Path(path, Test::Exists)),
            Operand::Union(paths) => {
                Ok(Expr::Or(paths.into_iter().map(|path| Expr::Path(path, Test::Exists)).collect()))
            }
            Operand::Boolean(expr) => Ok(expr),
            Operand::Text(_) => Err(self.refuse(start, "literal-condition", hints::TEXT_CONDITION)),
            Operand::Number(_) => Err(self.refuse(start, "literal-condition", hints::NUMBER_CONDITION)),
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<(), Refused> {
        (self.token, self.start) = self.lexer.next()?;
        Ok(())
    }

    fn expect(&mut self, token: Token<'a>, wanted: &str) -> Result<(), Refused> {
        if self.token != token {
            return Err(self.unexpected(wanted));
        }
        self.advance()
    }

    fn no_predicate(&self, what: &str) -> Result<(), Refused> {
        if self.token != Token::OpenBracket {
            return Ok(());
        }
        let reason = format!("{what} takes no predicate; put it on the step before");
        Err(self.refuse(self.start, "filter-expression", reason))
    }

    /// After a parenthesis or a variable: `(P)[n]` and `(P)/x` are refused.
    fn no_further_step(&self) -> Result<(), Refused> {
        match self.token {
            Token::OpenBracket | Token::Slash | Token::DoubleSlash => {
                Err(self.refuse(self.start, "filter-expression", hints::FILTER_EXPRESSION))
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn count(&mut self) -> Result<(), Refused> {
        self.nodes += 1;
        if self.nodes > NODES_LIMIT {
            let what = "the query has too many steps, predicates and operands";
            return Err(self.refuse_limit(self.start, "nodes-limit", what, self.nodes, NODES_LIMIT));
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Refused> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            let what = "the query is nested too deep";
            return Err(self.refuse_limit(self.start, "depth-limit", what, self.depth, DEPTH_LIMIT));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn repeat(&mut self, bytes: usize, at: usize) -> Result<(), Refused> {
        self.repeated += bytes;
        if self.repeated > TEXT_LIMIT {
            let what = "the query is too long with its prefixes and unions written out";
            return Err(self.refuse_limit(at, "text-limit", what, self.repeated, TEXT_LIMIT));
        }
        Ok(())
    }

    #[cold]
    fn refuse(&self, offset: usize, code: &'static str, reason: impl Into<String>) -> Refused {
        refuse(self.lexer.text(), offset, code, reason)
    }

    #[cold]
    fn refuse_limit(&self, offset: usize, code: &'static str, what: &str, value: usize, limit: usize) -> Refused {
        refuse_limit(self.lexer.text(), offset, code, what, value, limit)
    }

    #[cold]
    fn unknown_function(&self, name: &str) -> Refused {
        let (code, reason) = hints::function(name);
        self.refuse(self.start, code, reason)
    }

    #[cold]
    fn unexpected(&self, wanted: &str) -> Refused {
        let (code, reason) = hints::unexpected(self.token, &self.lexer.text()[self.start..], wanted);
        self.refuse(self.start, code, reason)
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "text" | "node" | "comment" | "processing-instruction")
}

fn no_namespace(local: &str) -> NameTest {
    NameTest::Name(Name { uri: String::new(), local: local.to_string() })
}

fn in_namespace(uri: &str, local: Local) -> NameTest {
    match local {
        Local::Any => NameTest::AnyIn(uri.to_string()),
        Local::Name(local) => NameTest::Name(Name { uri: uri.to_string(), local: local.to_string() }),
    }
}

/// The operator with its operands exchanged.
fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}

/// The position a number stands for, if it is one.
fn position(value: f64) -> Option<u32> {
    let rounded = value as u32;
    (rounded > 0 && f64::from(rounded) == value).then_some(rounded)
}
