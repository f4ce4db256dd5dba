//! A batch of messages: an Arrow array, or a stream of arrays, of bytes or strings. Or of structs of these in the field
//! `message` with their envelopes: the strings `source`, `topic` and `received`, and the map `headers`.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, MapArray, StringArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::LimitsArg;
use super::arrow::import;
use crate::document::{Envelope, Message};
use crate::error::{Position, ReadError};
use crate::limits::Limits;

/// Borrows the messages from Arrow's buffers.
pub struct Messages {
    chunks: Vec<Chunk>,
    are_strings: bool,
}

struct Chunk {
    messages: ArrayRef,
    envelopes: Option<Envelopes>,
}

/// Columns of envelopes. A null struct is a message whose envelope is not known.
struct Envelopes {
    known: Option<NullBuffer>,
    source: StringArray,
    topic: StringArray,
    received: StringArray,
    headers: MapArray,
}

impl<'py> FromPyObject<'_, 'py> for Messages {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Messages> {
        let mut are_strings = false;
        let mut read_messages_as = |given: DataType| {
            are_strings = matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            as_bytes(given)
        };
        let data = import(&given, |given| match given {
            DataType::Struct(fields) => {
                let fields = fields.iter().map(|field| match field.name().as_str() {
                    "message" => {
                        let read_as = read_messages_as(field.data_type().clone())?;
                        Ok(Field::new("message", read_as, true))
                    }
                    _ => Ok(Field::clone(field)),
                });
                Ok(DataType::Struct(fields.collect::<PyResult<Fields>>()?))
            }
            plain => read_messages_as(plain),
        })?;
        let chunks = data.into_iter().map(make_array).map(Chunk::new).collect::<PyResult<_>>()?;
        Ok(Messages { chunks, are_strings })
    }
}

impl Chunk {
    fn new(array: ArrayRef) -> PyResult<Chunk> {
        let Some(parts) = array.as_struct_opt() else {
            return Ok(Chunk { messages: array, envelopes: None });
        };
        let refused = |name: &str| {
            let reason =
                format!("messages are bytes or strings, or made by `with_envelopes`: it lacks {name}");
            PyTypeError::new_err(reason)
        };
        let column = |name: &str| parts.column_by_name(name).ok_or_else(|| refused(name));
        let strings = |name: &str| {
            column(name)?
                .as_string_opt::<i32>()
                .cloned()
                .ok_or_else(|| refused(&format!("{name} as strings")))
        };
        let is_map_of_strings = |map: &MapArray| {
            *map.keys().data_type() == DataType::Utf8 && *map.values().data_type() == DataType::Utf8
        };
        let headers = column("headers")?.as_map_opt().filter(|map| is_map_of_strings(map)).cloned();
        let headers = headers.ok_or_else(|| refused("headers as maps of strings"))?;
        let (source, topic, received) = (strings("source")?, strings("topic")?, strings("received")?);
        let envelopes = Some(Envelopes { known: parts.nulls().cloned(), source, topic, received, headers });
        Ok(Chunk { messages: column("message")?.clone(), envelopes })
    }

    fn message(&self, row: usize) -> Message<'_> {
        let bytes = if self.messages.is_null(row) { &[] } else { bytes(&self.messages, row) };
        Message { bytes, envelope: self.envelopes.as_ref().and_then(|envelopes| envelopes.get(row)) }
    }
}

impl Envelopes {
    fn get(&self, row: usize) -> Option<Envelope<'_>> {
        if self.known.as_ref().is_some_and(|known| known.is_null(row)) {
            return None;
        }
        fn field(column: &StringArray, row: usize) -> Option<&str> {
            column.is_valid(row).then(|| column.value(row))
        }
        let offsets = self.headers.value_offsets();
        let headers = match self.headers.is_valid(row) {
            true => offsets[row] as usize..offsets[row + 1] as usize,
            false => 0..0,
        };
        let (names, values) =
            (self.headers.keys().as_string::<i32>(), self.headers.values().as_string::<i32>());
        let value = |at: usize| if values.is_null(at) { "" } else { values.value(at) };
        Some(Envelope {
            source: field(&self.source, row),
            topic: field(&self.topic, row),
            received: field(&self.received, row),
            headers: headers.map(|at| (names.value(at), value(at))).collect(),
        })
    }
}

impl Messages {
    /// The limits to read them with.
    pub fn limits(&self, given: LimitsArg) -> Limits {
        Limits { known_utf8: self.are_strings, ..given.0 }
    }

    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.messages.len()).sum()
    }

    /// The messages in order; an error for a null.
    pub fn iter(&self) -> impl Iterator<Item = Result<Message<'_>, ReadError>> {
        let is_null = |chunk: &Chunk, row| chunk.messages.is_null(row);
        self.rows()
            .map(move |(chunk, row)| if is_null(chunk, row) { Err(null()) } else { Ok(chunk.message(row)) })
    }

    /// The messages in order, an empty one for a null.
    pub fn or_empty(&self) -> impl Iterator<Item = Message<'_>> {
        self.rows().map(|(chunk, row)| chunk.message(row))
    }

    /// The error to report for the row of a message from `or_empty`: another one if the message is null.
    pub fn error_at(&self, mut row: usize, error: ReadError) -> ReadError {
        for chunk in &self.chunks {
            if row < chunk.messages.len() {
                return if chunk.messages.is_null(row) { null() } else { error };
            }
            row -= chunk.messages.len();
        }
        error
    }

    fn rows(&self) -> impl Iterator<Item = (&Chunk, usize)> {
        self.chunks.iter().flat_map(|chunk| (0..chunk.messages.len()).map(move |row| (chunk, row)))
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
