//! What transformations make of messages, as a table; and the schema that plans may rely on.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeBinaryArray, RecordBatch, UInt32Array};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use pyo3::prelude::*;

use super::error::Outcomes;
use super::tables::record_batch;
use crate::transform::Outputs;

/// The element graph of a DTD.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct Schema(pub Arc<crate::transform::Schema>);

#[pymethods]
impl Schema {
    /// From elements with what they may contain, and those where messages may begin.
    #[new]
    fn new(elements: Vec<(String, Vec<String>)>, roots: Vec<String>) -> Schema {
        Schema(Arc::new(crate::transform::Schema::new(elements, &roots)))
    }
}

/// Rows (message, query, output or error), and the outputs.
pub struct Made {
    message: Vec<u32>,
    query: Vec<u32>,
    output: Vec<u32>,
    made: NullBufferBuilder,
    errors: Outcomes,
    /// The outputs one after the other, and where each begins and the last ends.
    outputs: Vec<u8>,
    offsets: Vec<i64>,
}

impl Made {
    pub fn new() -> Made {
        Made {
            message: Vec::new(),
            query: Vec::new(),
            output: Vec::new(),
            made: NullBufferBuilder::new(0),
            errors: Outcomes::default(),
            outputs: Vec::new(),
            offsets: vec![0],
        }
    }

    pub fn push(&mut self, message: usize, outputs: &Outputs) {
        let first = self.offsets.len() as u32 - 1;
        self.message.extend(std::iter::repeat_n(message as u32, outputs.outcomes.len()));
        self.query.extend(outputs.outcomes.iter().map(|(query, _)| query));
        for (_, outcome) in &outputs.outcomes {
            self.made.append(outcome.is_ok());
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

    /// The rows, and the outputs they name by place.
    pub fn finish(mut self, generation: u64) -> (RecordBatch, RecordBatch) {
        let output = UInt32Array::new(self.output.into(), self.made.finish());
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
