//! What transformations make of messages, as a table; and the schema that plans may rely on.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use pyo3::prelude::*;

use super::error::Outcomes;
use super::tables::record_batch;
use crate::transform::transformer::Outputs;

/// The element graph of a DTD.
#[pyclass(frozen, module = "tamis._kernel")]
pub struct Schema(pub Arc<crate::transform::schema::Schema>);

#[pymethods]
impl Schema {
    /// From elements with what they may contain, and those where messages may begin.
    #[new]
    fn new(elements: Vec<(String, Vec<String>)>, roots: Vec<String>) -> Schema {
        Schema(Arc::new(crate::transform::schema::Schema::new(elements, &roots)))
    }
}

/// Rows (message, query, output or error), and the outputs.
#[derive(Default)]
pub struct Made {
    message: UInt32Builder,
    query: UInt32Builder,
    output: UInt32Builder,
    errors: Outcomes,
    outputs: LargeBinaryBuilder,
    count: u32,
}

impl Made {
    pub fn push(&mut self, message: usize, outputs: &Outputs) {
        for (query, outcome) in &outputs.outcomes {
            self.message.append_value(message as u32);
            self.query.append_value(*query);
            self.output.append_option(outcome.as_ref().ok().map(|number| self.count + number));
            match outcome {
                Ok(_) => self.errors.succeed(),
                Err(error) => self.errors.push(error.code, &error.reason, None, error.exceeded),
            }
        }
        self.count += outputs.iter().len() as u32;
        outputs.iter().for_each(|output| self.outputs.append_value(output));
    }

    /// The rows, and the outputs they name by place.
    pub fn finish(mut self, generation: u64) -> (RecordBatch, RecordBatch) {
        let mut columns = vec![
            ("message", Arc::new(self.message.finish()) as ArrayRef, false),
            ("query", Arc::new(self.query.finish()), false),
            ("output", Arc::new(self.output.finish()), true),
        ];
        columns.extend(self.errors.finish());
        let rows = record_batch(columns, [("generation", generation.to_string())]);
        let outputs = record_batch([("output", Arc::new(self.outputs.finish()) as ArrayRef, false)], []);
        (rows, outputs)
    }
}
