//! Query text → AST, by recursive descent with one token of lookahead. The grammar is in docs/language.md;
//! the functions have the names of its rules and follow its order. Every recursion goes through `enter`,
//! which bounds the depth.
//!
//! | file | what it parses |
//! |---|---|
//! | `expression.rs` | `or`, `and`, arithmetic, primary expressions |
//! | `sequence.rs` | sets of nodes, sequences, `castable as`, `if` |
//! | `comparison.rs` | comparisons |
//! | `function.rs` | function calls |
//! | `lexer.rs` | text → tokens |
//! | `path.rs` | paths, steps, predicates |
//! | `nested_step.rs` | expressions as steps |
//! | `node_test.rs` | node tests |
//! | `simplify.rs` | comparisons of computed values that are simple conditions |
//! | `flwor.rs` | `for … let … where … order by … return …`, and expressions in braces |
//! | `constructor.rs`, `markup.rs` | constructed elements and the characters in them |
//! | `scope.rs` | the namespaces that constructed elements declare, and the variables |
//! | `refusal.rs`, `hints.rs` | refusals: position, code, and the words of their reasons |

mod comparison;
mod constructor;
mod expression;
mod flwor;
mod function;
pub(super) mod hints;
mod lexer;
mod markup;
mod nested_step;
mod node_test;
mod path;
mod refusal;
mod scope;
mod sequence;
mod simplify;

use flwor::Construction;
use lexer::{Lexer, Token};
use refusal::{Refused, refuse, refuse_limit};
use scope::Variables;

use super::ast::{Expr, Query};
use super::data_use::DataUse;
use super::namespaces::Namespaces;
use crate::error::QueryError;
use crate::limits::{QUERY_DEPTH_LIMIT, QUERY_NODES_LIMIT, QUERY_TEXT_LIMIT};

/// What a text says.
pub struct Parsed {
    /// The query as it is written.
    pub query: Query,
    pub warnings: Vec<QueryError>,
    /// The local data that it names, in the order of the text.
    pub data: Vec<DataUse>,
}

pub fn parse(text: &str, namespaces: &Namespaces) -> Result<Parsed, Refused> {
    let parsed = parse_anew(text, namespaces, false)?;
    // Only in a query with local data are there other documents than the message.
    if parsed.data.is_empty() { Ok(parsed) } else { parse_anew(text, namespaces, true) }
}

fn parse_anew(text: &str, namespaces: &Namespaces, has_data: bool) -> Result<Parsed, Refused> {
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
        variables: Variables::default(),
        construction: Construction::default(),
        elements: 0,
        warnings: Vec::new(),
        has_data,
        data: Vec::new(),
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
        Token::End => Ok(Parsed { query, warnings: parser.warnings, data: parser.data }),
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
    pub(super) variables: Variables<'a>,
    pub(super) construction: Construction<'a>,
    /// The number of constructed elements around.
    pub(super) elements: usize,
    warnings: Vec<QueryError>,
    /// Whether the query names local data: then `$msg` in a predicate may be another document than `/`.
    pub(super) has_data: bool,
    pub(super) data: Vec<DataUse>,
}

impl<'a> Parser<'a> {
    /// `or-expr`, used as a boolean.
    pub(super) fn condition(&mut self) -> Result<Expr, Refused> {
        Ok(self.or_expr()?.into_condition())
    }

    pub(super) fn expect(&mut self, token: Token, wanted: &str) -> Result<(), Refused> {
        if self.lexer.token != token {
            return Err(self.unexpected(wanted));
        }
        self.lexer.advance()
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

    /// Adds a warning about what is accepted but probably not intended.
    #[cold]
    pub(super) fn warn(&mut self, offset: usize, code: &'static str, reason: impl Into<String>) {
        self.warnings.push(*refuse(self.lexer.text, offset, code, reason));
    }

    #[cold]
    pub(super) fn refuse(&self, offset: usize, code: &'static str, reason: impl Into<String>) -> Refused {
        refuse(self.lexer.text, offset, code, reason)
    }

    #[cold]
    pub(super) fn refuse_limit(
        &self,
        offset: usize,
        code: &'static str,
        what: &str,
        value: usize,
        limit: usize,
    ) -> Refused {
        refuse_limit(self.lexer.text, offset, code, what, value, limit)
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
