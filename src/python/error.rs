//! Errors of the kernel → exceptions of `tamis.errors`, or columns of a table.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::tables::{Column, record_batch};
use crate::error::{DataError, Exceeded, GenerationError, Position, QueryError, ReadError};
use crate::matching::budget::WorkLimit;

pub fn raise_query(py: Python<'_>, error: &QueryError) -> PyErr {
    raise_positioned(py, "QueryError", error.code, &error.reason, error.position, error.exceeded)
}

pub fn raise_read(py: Python<'_>, error: &ReadError) -> PyErr {
    raise_positioned(py, "ReadError", error.code, &error.reason, error.position, error.exceeded)
}

pub fn raise_data(py: Python<'_>, error: &DataError) -> PyErr {
    (error.code, error.reason.as_str())
        .into_pyobject(py)
        .and_then(|arguments| raise(py, "DataError", arguments))
        .unwrap_or_else(|error| error)
}

pub fn raise_generation_error(py: Python<'_>, error: &GenerationError) -> PyErr {
    (error.code, error.reason.as_str())
        .into_pyobject(py)
        .and_then(|arguments| raise(py, "GenerationError", arguments))
        .unwrap_or_else(|error| error)
}

fn raise_positioned(
    py: Python<'_>,
    class: &str,
    code: &str,
    reason: &str,
    position: Position,
    exceeded: Option<Exceeded>,
) -> PyErr {
    let (value, limit) = (exceeded.map(|e| e.value), exceeded.map(|e| e.limit));
    (code, reason, position.offset, position.line, position.column, value, limit)
        .into_pyobject(py)
        .and_then(|arguments| raise(py, class, arguments))
        .unwrap_or_else(|error| error)
}

fn raise<'py>(py: Python<'py>, class: &str, arguments: Bound<'py, PyTuple>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(py.import("tamis.errors")?.getattr(class)?.call1(arguments)?))
}

/// Columns of a result for its error: code, reason, position, and both numbers of a limit. All are null for a
/// row that succeeded.
#[derive(Default)]
pub struct ErrorColumns {
    code: StringBuilder,
    reason: StringBuilder,
    numbers: [UInt64Builder; 5],
    /// Rows that succeeded since the last error. As nearly all rows do, their nulls are appended together.
    succeeded: usize,
}

impl ErrorColumns {
    pub fn succeed(&mut self, rows: usize) {
        self.succeeded += rows;
    }

    pub fn fail(&mut self, error: &ReadError) {
        self.push(error.code, &error.reason, Some(error.position), error.exceeded);
    }

    /// Errors of transformations have no position.
    pub fn push(&mut self, code: &str, reason: &str, position: Option<Position>, exceeded: Option<Exceeded>) {
        self.write_succeeded();
        self.code.append_value(code);
        self.reason.append_value(reason);
        let numbers = [|p: Position| p.offset, |p: Position| p.line, |p: Position| p.column]
            .map(|of| position.map(|position| of(position) as u64));
        let limit = [exceeded.map(|e| e.value), exceeded.map(|e| e.limit)];
        for (column, number) in self.numbers.iter_mut().zip(numbers.into_iter().chain(limit)) {
            column.append_option(number);
        }
    }

    fn write_succeeded(&mut self) {
        let rows = std::mem::take(&mut self.succeeded);
        self.code.append_nulls(rows);
        self.reason.append_nulls(rows);
        self.numbers.iter_mut().for_each(|column| column.append_nulls(rows));
    }

    pub fn finish(mut self) -> Vec<Column> {
        let (code, reason, numbers): (ArrayRef, ArrayRef, [ArrayRef; 5]) = if self.code.is_empty() {
            // All columns of a type are the same nulls: share them.
            let text: ArrayRef = Arc::new(StringArray::new_null(self.succeeded));
            let number: ArrayRef = Arc::new(UInt64Array::new_null(self.succeeded));
            (text.clone(), text, std::array::from_fn(|_| number.clone()))
        } else {
            self.write_succeeded();
            let numbers = self.numbers.map(|mut column| Arc::new(column.finish()) as ArrayRef);
            (Arc::new(self.code.finish()), Arc::new(self.reason.finish()), numbers)
        };
        let names = ["offset", "line", "column", "value", "limit"];
        let numbers = names.into_iter().zip(numbers).map(|(name, column)| (name, column, true));
        [("code", code, true), ("reason", reason, true)].into_iter().chain(numbers).collect()
    }
}

/// The errors of a batch, one row each: the position in the batch, then the fields of the exception.
pub struct ErrorTable {
    /// The name of the first column: `message`, `query` or `row`.
    position_name: &'static str,
    position: UInt32Builder,
    errors: ErrorColumns,
}

impl ErrorTable {
    pub fn new(position_name: &'static str) -> ErrorTable {
        ErrorTable { position_name, position: UInt32Builder::new(), errors: ErrorColumns::default() }
    }

    pub fn push_read(&mut self, position: usize, error: &ReadError) {
        self.position.append_value(position as u32);
        self.errors.fail(error);
    }

    /// A query that exceeded the work limit, which its numbers name.
    pub fn push_failed(&mut self, position: usize, reason: &str, exceeded: Exceeded) {
        self.position.append_value(position as u32);
        self.errors.push(WorkLimit::CODE, reason, None, Some(exceeded));
    }

    pub fn push_query(&mut self, position: usize, error: &QueryError) {
        self.position.append_value(position as u32);
        self.errors.push(error.code, &error.reason, Some(error.position), error.exceeded);
    }

    pub fn finish(mut self) -> RecordBatch {
        let position: Column = (self.position_name, Arc::new(self.position.finish()), false);
        record_batch(std::iter::once(position).chain(self.errors.finish()), [])
    }
}
