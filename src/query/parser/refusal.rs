//! The errors of the query parser: how they are constructed.

use crate::error::{Exceeded, Position, QueryError};

/// Boxed, so that results are small when there is no error.
pub type Refused = Box<QueryError>;

#[cold]
pub fn refuse(text: &str, offset: usize, code: &'static str, reason: impl Into<String>) -> Refused {
    let position = Position::of(text.as_bytes(), offset);
    Box::new(QueryError { code, reason: reason.into(), position, exceeded: None })
}

/// A limit is exceeded: the reason has both numbers.
#[cold]
pub fn refuse_limit(
    text: &str,
    offset: usize,
    code: &'static str,
    what: &str,
    value: usize,
    limit: usize,
) -> Refused {
    let mut refused = refuse(text, offset, code, format!("{what}: {value}, at most {limit} allowed"));
    refused.exceeded = Some(Exceeded { value: value as u64, limit: limit as u64 });
    refused
}
