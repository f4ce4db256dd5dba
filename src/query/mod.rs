//! Query text in, canonical query and its decomposition out.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | `parse`: all steps from text to canonical query; `QueryId` |
//! | `parser/` | text → AST, or a refusal with position and hint |
//! | `namespaces.rs` | the prefixes that a query's names may use |
//! | `ast.rs`, `transformation.rs` | the AST of a filter, and what a transformation adds to it |
//! | `flwor.rs`, `blocks.rs` | transformations with any clauses, and those that shared operators can run |
//! | `canonical.rs` | AST → canonical AST, so that equal queries become one |
//! | `text.rs`, `template_text.rs`, `value_text.rs` | canonical AST → canonical text; the query's id is the hash of it |
//! | `data_use.rs`, `join.rs` | the local data that a query names, and the equalities that find its records |
//! | `joined.rs`, `join_name.rs` | joins with local data as the index sees them, and as names |
//! | `hash_join.rs` | equalities by which the nodes of a message are looked up |
//! | `decompose.rs` | query → linear paths with tests, and alternatives of necessary ones |
//! | `inexact.rs` | why alternatives do not say all |
//! | `linear_path.rs` | a line as an absolute path, and how far below a branch point it ends |
//! | `postfix.rs` | query → its boolean tree in postfix order |
//! | `weaken.rs` | query → a weaker one that routes: alternatives of linear paths |
//! | `envelope.rs` | `$envelope`, the path to the envelope of a message |
//! | `element_path.rs` | path → its element steps, without predicates |
//! | `value.rs` | what is evaluated on the document: any axis, arithmetic, functions, comparisons of any operands |
//! | `variables.rs` | which variables an expression names |
//! | `constant.rs` | what a value is that does not depend on the message |
//! | `necessary/` | value → a condition that holds wherever it is true |
//! | `own_name.rs` | conditions on a node's own name → name tests |
//! | `rename.rs` | a query with other name tests |
//! | `signature.rs` | the table of functions |
//! | `functions.rs`, `number.rs`, `moment.rs` | XPath's functions of strings and numbers; `number()`; dates |
//! | `atomic.rs`, `pattern.rs` | the types of `castable as`; regular expressions |
//! | `replacement.rs` | `replace()` and `tokenize()` |

pub mod ast;
pub mod atomic;
mod blocks;
mod canonical;
mod constant;
pub mod data_use;
pub mod decompose;
pub mod element_path;
pub mod envelope;
pub mod flwor;
pub mod functions;
pub mod hash_join;
pub mod inexact;
pub mod join;
pub mod join_name;
pub mod joined;
pub mod linear_path;
pub mod moment;
pub(crate) mod namespaces;
mod necessary;
pub mod number;
mod own_name;
mod parser;
pub mod pattern;
pub mod picture;
pub mod postfix;
pub mod rename;
pub mod replacement;
mod signature;
mod template_text;
mod text;
pub mod transformation;
pub mod value;
mod value_text;
pub mod variables;
pub mod weaken;

use std::fmt;

use ast::Expr;
pub use ast::Query;
use data_use::DataUse;
pub use namespaces::Namespaces;
use parser::Parsed;

use crate::error::{Position, QueryError};
use crate::limits::QUERY_DEPTH_LIMIT;

/// Parses a query, resolves its names and rewrites it into canonical form.
pub fn parse(text: &str, namespaces: &Namespaces) -> Result<Query, QueryError> {
    let mut query = parse_as_written(text, namespaces)?;
    rewrite(&mut query);
    Ok(query)
}

/// Into canonical form.
fn rewrite(query: &mut Query) {
    canonical::canonicalise(query);
    envelope::widen(query);
}

/// The local data that a query names.
pub fn data_uses(text: &str, namespaces: &Namespaces) -> Result<Vec<DataUse>, QueryError> {
    parser::parse(text, namespaces).map(|parsed| parsed.data).map_err(|refused| *refused)
}

/// Parses a query, with warnings about what is probably not intended, such as a query that can never match, and the
/// local data that it names.
pub fn parse_with_warnings(
    text: &str,
    namespaces: &Namespaces,
) -> Result<(Query, Vec<QueryError>, Vec<DataUse>), QueryError> {
    let parsed = parser::parse(text, namespaces).map_err(|refused| *refused)?;
    let (mut query, mut warnings) = (parsed.query, parsed.warnings);
    rewrite(&mut query);
    let matches = query.expr == Expr::TRUE && query.transformation.is_none();
    if warnings.is_empty() && (matches || query.expr == Expr::FALSE) {
        warnings.push(QueryError {
            code: if matches { "always-matches" } else { "never-matches" },
            reason: parser::hints::constant(matches).to_string(),
            position: Position::of(text.as_bytes(), 0),
            exceeded: None,
        });
    }
    Ok((query, warnings, parsed.data))
}

/// A query whose canonical text parses to the same query again, so it can be stored as text.
pub struct StorableQuery {
    pub query: Query,
    pub canonical: String,
    pub id: QueryId,
    /// The local data that it names. Whether that exists is not known here.
    pub data: Vec<DataUse>,
}

/// Canonical texts up to this length cannot exceed a limit: a level of nesting takes at least three
/// characters.
const SURELY_STORABLE: usize = 3 * (QUERY_DEPTH_LIMIT - 1);

/// Parses a query that will be stored. Merging segments parses canonical texts again, so a query whose
/// canonical text exceeds a limit is refused here.
pub fn parse_storable(text: &str, namespaces: &Namespaces) -> Result<StorableQuery, QueryError> {
    let Parsed { mut query, data, .. } = parser::parse(text, namespaces).map_err(|refused| *refused)?;
    rewrite(&mut query);
    let canonical = query.canonical();
    if canonical.len() > SURELY_STORABLE {
        parse_as_written(&canonical, &Namespaces::default()).map_err(|error| QueryError {
            reason: format!("{} (of the canonical form)", error.reason),
            position: Default::default(),
            ..error
        })?;
    }
    let id = QueryId::of(&canonical);
    Ok(StorableQuery { query, canonical, id, data })
}

/// Parses a query without rewriting it into canonical form; tests compare the two.
pub fn parse_as_written(text: &str, namespaces: &Namespaces) -> Result<Query, QueryError> {
    parser::parse(text, namespaces).map(|parsed| parsed.query).map_err(|refused| *refused)
}

/// A query's id: the first 128 bits of the BLAKE3 hash of its canonical text, so the same in every process.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct QueryId(pub [u8; 16]);

impl QueryId {
    /// The id of the query with this canonical text.
    pub fn of(canonical: &str) -> QueryId {
        let mut id = [0; 16];
        id.copy_from_slice(&blake3::hash(canonical.as_bytes()).as_bytes()[..16]);
        QueryId(id)
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueryId({self})")
    }
}

/// A clause as canonical text.
pub fn clause_text(clause: &value::Clause) -> String {
    let mut out = String::new();
    template_text::clause(clause, &mut out);
    out
}

/// A value as canonical text.
pub fn value_text(value: &value::Value) -> String {
    let mut out = String::new();
    value_text::computed(value, &mut out);
    out
}

impl Query {
    /// The query as text, with expanded names; it parses to the same query again.
    pub fn canonical(&self) -> String {
        let mut out = String::with_capacity(64);
        text::write(self, &mut out);
        out
    }

    pub fn id(&self) -> QueryId {
        QueryId::of(&self.canonical())
    }
}
