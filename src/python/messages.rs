//! A batch of messages: an Arrow array, or a stream of arrays, of bytes or strings.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::LimitsArg;
use super::arrow::import;
use crate::error::{Position, ReadError};
use crate::limits::Limits;

/// Borrows the messages from Arrow's buffers.
pub struct Messages {
    chunks: Vec<ArrayRef>,
    are_strings: bool,
}

impl<'py> FromPyObject<'_, 'py> for Messages {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Messages> {
        let mut are_strings = false;
        let data = import(&given, |given| {
            are_strings = matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            as_bytes(given)
        })?;
        Ok(Messages { chunks: data.into_iter().map(make_array).collect(), are_strings })
    }
}

impl Messages {
    /// The limits to read them with.
    pub fn limits(&self, given: LimitsArg) -> Limits {
        Limits { known_utf8: self.are_strings, ..given.0 }
    }

    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// The messages in order; an error for a null.
    pub fn iter(&self) -> impl Iterator<Item = Result<&[u8], ReadError>> {
        self.rows().map(|(chunk, row)| if chunk.is_null(row) { Err(null()) } else { Ok(bytes(chunk, row)) })
    }

    /// The messages in order, an empty one for a null.
    pub fn or_empty(&self) -> impl Iterator<Item = &[u8]> {
        self.rows().map(|(chunk, row)| if chunk.is_null(row) { &[] } else { bytes(chunk, row) })
    }

    /// The error to report for the row of a message from `or_empty`: another one if the message is null.
    pub fn error_at(&self, mut row: usize, error: ReadError) -> ReadError {
        for chunk in &self.chunks {
            if row < chunk.len() {
                return if chunk.is_null(row) { null() } else { error };
            }
            row -= chunk.len();
        }
        error
    }

    fn rows(&self) -> impl Iterator<Item = (&ArrayRef, usize)> {
        self.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |row| (chunk, row)))
    }
}

/// Strings are read as bytes: reading a message checks its encoding.
fn as_bytes(given: DataType) -> PyResult<DataType> {
    match given {
        DataType::Binary | DataType::Utf8 => Ok(DataType::Binary),
        DataType::LargeBinary | DataType::LargeUtf8 => Ok(DataType::LargeBinary),
        DataType::BinaryView | DataType::Utf8View => Ok(DataType::BinaryView),
        other => Err(PyTypeError::new_err(format!("messages are bytes or strings, not {other}"))),
    }
}

fn bytes(chunk: &ArrayRef, row: usize) -> &[u8] {
    match chunk.data_type() {
        DataType::Binary => chunk.as_binary::<i32>().value(row),
        DataType::LargeBinary => chunk.as_binary::<i64>().value(row),
        _ => chunk.as_binary_view().value(row),
    }
}

fn null() -> ReadError {
    ReadError {
        code: "no-message",
        reason: "the message is null".to_string(),
        position: Position { offset: 0, line: 1, column: 1 },
        exceeded: None,
    }
}
