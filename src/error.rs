//! Errors by phase, each with a stable code and the place concerned.

use std::fmt;

/// A position in a message or query: byte offset, and line and column counted from 1
/// (columns in characters).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    pub offset: usize,
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The position of a byte offset in `text`. Costs a pass over the text: for error paths only.
    pub fn of(text: &[u8], offset: usize) -> Position {
        let before = &text[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Position {
            offset,
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A limit that was exceeded: the value and the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exceeded {
    pub value: u64,
    pub limit: u64,
}

/// Declares an error type of one phase; all phases have the same shape.
macro_rules! phase_error {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name {
            /// Stable, for programs: `unclosed-element`, `depth-limit`, `unknown-function`.
            pub code: &'static str,
            /// For people: what is wrong and, where one helps, what to do.
            pub reason: String,
            pub position: Position,
            pub exceeded: Option<Exceeded>,
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}: {} ({})", self.code, self.reason, self.position)
            }
        }

        impl std::error::Error for $name {}
    };
}

phase_error! {
    /// A message or DTD that is refused.
    ReadError
}
phase_error! {
    /// A query that is refused.
    QueryError
}

/// Local data that cannot be built, changed or opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataError {
    pub code: &'static str,
    pub reason: String,
}

impl DataError {
    pub fn new(code: &'static str, reason: String) -> DataError {
        DataError { code, reason }
    }

    /// A record, numbered from 0, that the reader refuses.
    pub fn of_record(number: usize, error: &ReadError) -> DataError {
        let reason = format!("record {}: {}: {}", number + 1, error.position, error.reason);
        DataError { code: error.code, reason }
    }

    /// The same with the number of the record, from 0, that it is about.
    pub fn at_record(self, number: usize) -> DataError {
        DataError { reason: format!("record {} {}", number + 1, self.reason), ..self }
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for DataError {}

impl From<DataError> for GenerationError {
    fn from(DataError { code, reason }: DataError) -> GenerationError {
        GenerationError::new(code, reason)
    }
}

/// A segment, generation or snapshot that cannot be built, written or opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenerationError {
    pub code: &'static str,
    pub reason: String,
    pub exceeded: Option<Exceeded>,
}

impl GenerationError {
    pub fn new(code: &'static str, reason: String) -> GenerationError {
        GenerationError { code, reason, exceeded: None }
    }
}

impl fmt::Display for GenerationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for GenerationError {}
