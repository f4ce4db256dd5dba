//! Outputs of transformations → tables; the class `Schema`.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeBinaryArray, RecordBatch, UInt32Array};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use pyo3::prelude::*;

use super::error::ErrorColumns;
use super::tables::record_batch;
use crate::transform::Outputs;

/// The element graph of a DTD. Plans rely on it for messages that conform.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct Schema(pub Arc<crate::transform::Schema>);

#[pymethods]
impl Schema {
    /// Elements with their permitted children, and the permitted root elements.
    #[new]
    fn new(elements: Vec<(String, Vec<String>)>, roots: Vec<String>) -> Schema {
        Schema(Arc::new(crate::transform::Schema::new(elements, &roots)))
    }
}

/// Rows (message, query, output or error), and the outputs in one buffer.
pub struct OutputRows {
    message: Vec<u32>,
    query: Vec<u32>,
    output: Vec<u32>,
    has_output: NullBufferBuilder,
    errors: ErrorColumns,
    /// The outputs one after the other; output `n` ends at `offsets[n + 1]`.
    outputs: Vec<u8>,
    offsets: Vec<i64>,
}

impl OutputRows {
    pub fn new() -> OutputRows {
        OutputRows {
            message: Vec::new(),
            query: Vec::new(),
            output: Vec::new(),
            has_output: NullBufferBuilder::new(0),
            errors: ErrorColumns::default(),
            outputs: Vec::new(),
            offsets: vec![0],
        }
    }

    pub fn push(&mut self, message: usize, outputs: &Outputs) {
        let first = self.offsets.len() as u32 - 1;
        self.message.extend(std::iter::repeat_n(message as u32, outputs.outcomes.len()));
        self.query.extend(outputs.outcomes.iter().map(|(query, _)| query.0));
        for (_, outcome) in &outputs.outcomes {
            self.has_output.append(outcome.is_ok());
            self.output.push(outcome.as_ref().map_or(0, |number| first + number));
            match outcome {
                Ok(_) => self.errors.succeed(1),
                Err(error) => self.errors.push(error.code, &error.reason, None, error.exceeded),
            }
        }
        let start = self.outputs.len();
        self.outputs.extend_from_slice(outputs.bytes());
        self.offsets.extend(outputs.ends().iter().map(|end| (start + end) as i64));
    }

    /// The rows, and the outputs: column `output` of the rows is a position among them.
    pub fn finish(mut self, generation: u64) -> (RecordBatch, RecordBatch) {
        let output = UInt32Array::new(self.output.into(), self.has_output.finish());
        let mut columns = vec![
            ("message", Arc::new(UInt32Array::from(self.message)) as ArrayRef, false),
            ("query", Arc::new(UInt32Array::from(self.query)), false),
            ("output", Arc::new(output), true),
        ];
        columns.extend(self.errors.finish());
        let rows = record_batch(columns, [("generation", generation.to_string())]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let outputs = LargeBinaryArray::new(offsets, Buffer::from_vec(self.outputs), None);
        (rows, record_batch([("output", Arc::new(outputs) as ArrayRef, false)], []))
    }
}
