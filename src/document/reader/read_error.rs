//! The errors of the reader: how they are constructed.

use crate::error::{Exceeded, Position, ReadError};

/// Boxed, so that results are small when there is no error.
pub(super) type BoxedReadError = Box<ReadError>;
pub(super) type ReadResult<T> = Result<T, BoxedReadError>;

#[cold]
pub(super) fn read_error(
    code: &'static str,
    reason: impl Into<String>,
    source: &[u8],
    at: usize,
) -> BoxedReadError {
    let position = Position::of(source, at);
    Box::new(ReadError { code, reason: reason.into(), position, exceeded: None })
}

/// A limit is exceeded: `value` of `what`, where `limit` is allowed.
#[cold]
pub(super) fn exceeded(
    code: &'static str,
    what: &str,
    source: &[u8],
    at: usize,
    value: usize,
    limit: usize,
) -> BoxedReadError {
    let position = Position::of(source, at);
    let reason = format!("{value} {what}, at most {limit} allowed");
    let exceeded = Some(Exceeded { value: value as u64, limit: limit as u64 });
    Box::new(ReadError { code, reason, position, exceeded })
}
