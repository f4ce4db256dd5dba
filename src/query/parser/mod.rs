//! Query text → AST, by recursive descent with one token of lookahead. The grammar is in docs/language.md;
//! the functions have the names of its rules and follow its order. Every recursion goes through `enter`,
//! which bounds the depth.
//!
//! | file | what it parses |
//! |---|---|
//! | `mod.rs` | `or`, `and`, comparisons, functions |
//! | `lexer.rs` | text → tokens |
//! | `path.rs` | paths, steps, predicates |
//! | `block.rs` | `for … where … return …` |
//! | `constructor.rs`, `markup.rs` | constructed elements and the characters in them |
//! | `scope.rs` | the namespaces that constructed elements declare |
//! | `refusal.rs`, `hints.rs` | refusals: position, code, and the words of their reasons |

mod block;
mod constructor;
mod hints;
mod lexer;
mod markup;
mod path;
mod refusal;
mod scope;

use block::Construction;
use lexer::{Lexer, Token};
use path::StepAxis;
use refusal::{Refused, refuse, refuse_limit};

use super::ast::{Expr, Literal, Operator, Path, Query, Test};
use super::namespaces::Namespaces;
use super::number::number;
use crate::limits::{QUERY_DEPTH_LIMIT, QUERY_NODES_LIMIT, QUERY_TEXT_LIMIT};

pub fn parse(text: &str, namespaces: &Namespaces) -> Result<Query, Refused> {
    if text.len() > QUERY_TEXT_LIMIT {
        return Err(refuse_limit(
            text,
            0,
            "text-limit",
            "the query is too long",
            text.len(),
            QUERY_TEXT_LIMIT,
        ));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        namespaces,
        predicates: 0,
        depth: 0,
        nodes: 0,
        expanded_bytes: text.len(),
        construction: Construction::default(),
    };
    parser.lexer.advance()?;
    if parser.lexer.token == Token::End {
        return Err(refuse(text, 0, "empty", "the query is empty"));
    }
    let query = match parser.transformation()? {
        Some(transformation) => Query::transformation(transformation),
        None => Query::filter(parser.condition()?),
    };
    match parser.lexer.token {
        Token::End => Ok(query),
        _ => Err(parser.unexpected("the end of the query")),
    }
}

struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) namespaces: &'a Namespaces,
    /// The number of enclosing predicates.
    pub(super) predicates: usize,
    depth: usize,
    nodes: usize,
    /// Bytes of the query with unions and prefixes expanded.
    expanded_bytes: usize,
    pub(super) construction: Construction<'a>,
}

/// The value of an expression, before it is known how it is used.
enum Operand<'a> {
    Path(Path),
    Union(Vec<Path>),
    Boolean(Expr),
    Text(&'a str),
    Number(f64),
}

impl Operand<'_> {
    fn literal(&self) -> Option<Literal> {
        match *self {
            Operand::Text(value) => Some(Literal::Text(value.to_string())),
            Operand::Number(value) => Some(Literal::Number(value)),
            _ => None,
        }
    }
}

impl<'a> Parser<'a> {
    /// `or-expr`, used as a boolean.
    pub(super) fn condition(&mut self) -> Result<Expr, Refused> {
        let start = self.lexer.start;
        let operand = self.or_expr()?;
        self.boolean(operand, start)
    }

    /// `or-expr = and-expr ("or" and-expr)*`
    pub(super) fn or_expr(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let first = self.and_expr()?;
        if !self.lexer.is("or") {
            return Ok(first);
        }
        let mut operands = vec![self.boolean(first, start)?];
        while self.lexer.is("or") {
            self.lexer.advance()?;
            let start = self.lexer.start;
            let operand = self.and_expr()?;
            operands.push(self.boolean(operand, start)?);
        }
        Ok(Operand::Boolean(Expr::Or(operands)))
    }

    /// `and-expr = comparison ("and" comparison)*`
    fn and_expr(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let first = self.comparison()?;
        if !self.lexer.is("and") {
            return Ok(first);
        }
        let mut operands = vec![self.boolean(first, start)?];
        while self.lexer.is("and") {
            self.lexer.advance()?;
            let start = self.lexer.start;
            let operand = self.comparison()?;
            operands.push(self.boolean(operand, start)?);
        }
        Ok(Operand::Boolean(Expr::And(operands)))
    }

    /// `comparison = union (operator union)?`, a path on one side and a literal on the other.
    fn comparison(&mut self) -> Result<Operand<'a>, Refused> {
        let left = self.union()?;
        let Token::Compare(operator) = self.lexer.token else {
            return Ok(left);
        };
        let at = self.lexer.start;
        self.lexer.advance()?;
        let right = self.union()?;
        let (paths, operator, literal) = match (left.literal(), right.literal()) {
            (None, Some(literal)) => (left, operator, literal),
            (Some(literal), None) => (right, mirror(operator), literal),
            (Some(_), Some(_)) => {
                let reason = "two literals are compared; one side of a comparison must be a path";
                return Err(self.refuse(at, "literal-comparison", reason));
            }
            (None, None) => return Err(self.bad_comparison(&left, &right, at)),
        };
        let expr = match paths {
            Operand::Path(path) => Expr::Path(path, Test::Compare(operator, literal)),
            Operand::Union(paths) => {
                if let Literal::Text(value) = &literal {
                    self.charge_expansion(value.len() * (paths.len() - 1), at)?;
                }
                let compare = |path| Expr::Path(path, Test::Compare(operator, literal.clone()));
                Expr::Or(paths.into_iter().map(compare).collect())
            }
            condition => return Err(self.bad_comparison(&condition, &condition, at)),
        };
        Ok(Operand::Boolean(expr))
    }

    /// `union = primary ("|" primary)*`
    fn union(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let first = self.primary()?;
        if self.lexer.token != Token::Pipe {
            return Ok(first);
        }
        let mut paths = Vec::new();
        self.collect_paths(&mut paths, first, start)?;
        while self.lexer.token == Token::Pipe {
            self.lexer.advance()?;
            let start = self.lexer.start;
            let next = self.primary()?;
            self.collect_paths(&mut paths, next, start)?;
        }
        Ok(Operand::Union(paths))
    }

    fn collect_paths(
        &self,
        paths: &mut Vec<Path>,
        operand: Operand<'a>,
        start: usize,
    ) -> Result<(), Refused> {
        match operand {
            Operand::Path(path) => paths.push(path),
            Operand::Union(more) => paths.extend(more),
            _ => {
                return Err(self.refuse(
                    start,
                    "union-operand",
                    "`|` combines paths; combine conditions with `or`",
                ));
            }
        }
        Ok(())
    }

    /// `primary = literal | "-"* number | "(" or-expr ")" | function | path`
    #[inline]
    fn primary(&mut self) -> Result<Operand<'a>, Refused> {
        self.count()?;
        match self.lexer.token {
            Token::Text => {
                let value = self.lexer.word;
                self.lexer.advance()?;
                Ok(Operand::Text(value))
            }
            Token::Number => {
                let digits = self.lexer.word;
                self.lexer.advance()?;
                Ok(Operand::Number(number(digits.as_bytes())))
            }
            Token::Minus => self.negative(),
            Token::OpenParen => self.parenthesised(),
            Token::Variable => self.variable(self.lexer.word),
            _ if self.at_block() || self.at_constructor() => {
                Err(self.refuse(self.lexer.start, "transformation", hints::TRANSFORMATION))
            }
            Token::Name if self.lexer.follower() == Some(b'(') && !is_node_type(self.lexer.word) => {
                self.function(self.lexer.word)
            }
            Token::Prefixed if self.lexer.follower() == Some(b'(') => {
                Err(self.unknown_function(self.lexer.local.unwrap_or("*")))
            }
            _ => Ok(Operand::Path(self.path()?)),
        }
    }

    fn negative(&mut self) -> Result<Operand<'a>, Refused> {
        let start = self.lexer.start;
        let mut sign = 1.0;
        while self.lexer.token == Token::Minus {
            sign = -sign;
            self.lexer.advance()?;
        }
        if self.lexer.token != Token::Number {
            return Err(self.refuse(
                start,
                "arithmetic",
                "arithmetic is not supported; `-` is allowed only before a number",
            ));
        }
        let value = number(self.lexer.word.as_bytes());
        self.lexer.advance()?;
        Ok(Operand::Number(sign * value))
    }

    fn parenthesised(&mut self) -> Result<Operand<'a>, Refused> {
        self.enter()?;
        self.lexer.advance()?;
        let operand = self.or_expr()?;
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        self.no_further_step()?;
        Ok(operand)
    }

    /// `$doc` and `$msg` are the document node; in a block, its variable is the bound element.
    fn variable(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        let absolute = matches!(name, "doc" | "msg");
        if !absolute && (self.construction.variable != Some(name) || self.predicates > 0) {
            let reason = hints::variable(name, self.construction.variable);
            return Err(self.refuse(self.lexer.start, "variable", reason));
        }
        Ok(Operand::Path(self.path_after_variable(absolute)?))
    }

    /// Parses `$v/a` at the variable; returns the path after it.
    pub(super) fn path_after_variable(&mut self, absolute: bool) -> Result<Path, Refused> {
        self.lexer.advance()?;
        let mut path = Path { absolute, steps: Vec::new() };
        match StepAxis::from_token(self.lexer.token) {
            Some(step_axis) => {
                self.lexer.advance()?;
                self.steps(&mut path, step_axis)?;
            }
            None => self.no_further_step()?,
        }
        Ok(path)
    }

    fn function(&mut self, name: &str) -> Result<Operand<'a>, Refused> {
        let kind = match name {
            "not" | "contains" | "starts-with" | "true" | "false" => name,
            _ => return Err(self.unknown_function(name)),
        };
        self.enter()?;
        self.lexer.advance()?;
        self.lexer.advance()?;
        let expr = match kind {
            "not" => Expr::Not(Box::new(self.condition()?)),
            "true" => Expr::And(Vec::new()),
            "false" => Expr::Or(Vec::new()),
            _ => {
                let path = self.searched_path()?;
                self.expect(Token::Comma, "`,` and a string")?;
                let search_string = self.search_string()?;
                let test = if kind == "contains" {
                    Test::Contains(search_string)
                } else {
                    Test::StartsWith(search_string)
                };
                Expr::Path(path, test)
            }
        };
        self.expect(Token::CloseParen, "`)`")?;
        self.leave();
        self.no_further_step()?;
        Ok(Operand::Boolean(expr))
    }

    /// The first argument of `contains()` and `starts-with()`.
    fn searched_path(&mut self) -> Result<Path, Refused> {
        let start = self.lexer.start;
        match self.or_expr()? {
            Operand::Path(path) => Ok(path),
            Operand::Union(_) => {
                let reason = "a union is not supported here: only its first node would count; use `or`";
                Err(self.refuse(start, "argument", reason))
            }
            _ => Err(self.refuse(start, "argument", "the first argument must be a path")),
        }
    }

    /// The second argument of `contains()` and `starts-with()`.
    fn search_string(&mut self) -> Result<String, Refused> {
        let start = self.lexer.start;
        match self.or_expr()? {
            Operand::Text(value) => Ok(value.to_string()),
            Operand::Path(_) | Operand::Union(_) => {
                let reason =
                    "comparing a path with a path is not supported; the second argument must be a string";
                Err(self.refuse(start, "path-comparison", reason))
            }
            _ => Err(self.refuse(start, "argument", "the second argument must be a string literal")),
        }
    }

    pub(super) fn boolean(&self, operand: Operand<'a>, start: usize) -> Result<Expr, Refused> {
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

    pub(super) fn expect(&mut self, token: Token, wanted: &str) -> Result<(), Refused> {
        if self.lexer.token != token {
            return Err(self.unexpected(wanted));
        }
        self.lexer.advance()
    }

    /// After a parenthesis or a variable: `(P)[n]` and `(P)/x` are refused.
    pub(super) fn no_further_step(&self) -> Result<(), Refused> {
        match self.lexer.token {
            Token::OpenBracket | Token::Slash | Token::DoubleSlash => {
                Err(self.refuse(self.lexer.start, "filter-expression", hints::FILTER_EXPRESSION))
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    pub(super) fn count(&mut self) -> Result<(), Refused> {
        self.nodes += 1;
        if self.nodes > QUERY_NODES_LIMIT {
            let what = "the query has too many steps, predicates, operands and constructed parts";
            return Err(self.refuse_limit(
                self.lexer.start,
                "nodes-limit",
                what,
                self.nodes,
                QUERY_NODES_LIMIT,
            ));
        }
        Ok(())
    }

    pub(super) fn enter(&mut self) -> Result<(), Refused> {
        self.depth += 1;
        if self.depth > QUERY_DEPTH_LIMIT {
            let what = "the query is nested too deep";
            return Err(self.refuse_limit(
                self.lexer.start,
                "depth-limit",
                what,
                self.depth,
                QUERY_DEPTH_LIMIT,
            ));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn charge_expansion(&mut self, bytes: usize, at: usize) -> Result<(), Refused> {
        self.expanded_bytes += bytes;
        if self.expanded_bytes > QUERY_TEXT_LIMIT {
            let what = "the query is too long with its prefixes and unions written out";
            return Err(self.refuse_limit(at, "text-limit", what, self.expanded_bytes, QUERY_TEXT_LIMIT));
        }
        Ok(())
    }

    #[cold]
    pub(super) fn refuse(&self, offset: usize, code: &'static str, reason: impl Into<String>) -> Refused {
        refuse(self.lexer.text, offset, code, reason)
    }

    #[cold]
    fn refuse_limit(
        &self,
        offset: usize,
        code: &'static str,
        what: &str,
        value: usize,
        limit: usize,
    ) -> Refused {
        refuse_limit(self.lexer.text, offset, code, what, value, limit)
    }

    /// Refuses a comparison with no literal to compare with.
    #[cold]
    fn bad_comparison(&self, left: &Operand, right: &Operand, at: usize) -> Refused {
        if matches!((left, right), (Operand::Boolean(_), _) | (_, Operand::Boolean(_))) {
            let reason = "a condition cannot be compared; join conditions with `and`, `or`, `not()`";
            return self.refuse(at, "boolean-comparison", reason);
        }
        let reason = "comparing a path with a path is not supported; compare it with a literal";
        self.refuse(at, "path-comparison", reason)
    }

    #[cold]
    pub(super) fn unknown_function(&self, name: &str) -> Refused {
        let (code, reason) = hints::function(name);
        self.refuse(self.lexer.start, code, reason)
    }

    #[cold]
    pub(super) fn unexpected(&self, wanted: &str) -> Refused {
        let (code, reason) = hints::unexpected(&self.lexer, wanted);
        self.refuse(self.lexer.start, code, reason)
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "text" | "node" | "comment" | "processing-instruction")
}

/// The operator with its operands exchanged.
fn mirror(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}
