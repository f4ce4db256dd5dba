//! Errors of the kernel, as exceptions of `tamis.errors` and as rows of a table.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::tables::{Column, record_batch};
use crate::error::{Exceeded, IndexError, Position, QueryError, ReadError};

pub fn raise_query(py: Python<'_>, error: &QueryError) -> PyErr {
    raise_positioned(py, "QueryError", error.code, &error.reason, error.position, error.exceeded)
}

pub fn raise_read(py: Python<'_>, error: &ReadError) -> PyErr {
    raise_positioned(py, "ReadError", error.code, &error.reason, error.position, error.exceeded)
}

pub fn raise_index(py: Python<'_>, error: &IndexError) -> PyErr {
    (error.code, error.reason.as_str())
        .into_pyobject(py)
        .and_then(|arguments| raise(py, "IndexError", arguments))
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

/// Errors as columns: code, reason, place, and both numbers of a limit. All null where all went well.
#[derive(Default)]
pub struct Outcomes {
    code: StringBuilder,
    reason: StringBuilder,
    numbers: [UInt64Builder; 5],
    /// Rows without an error since the last one with an error. Nearly all are: they are written together.
    succeeded: usize,
}

impl Outcomes {
    pub fn succeed(&mut self, rows: usize) {
        self.succeeded += rows;
    }

    pub fn fail(&mut self, error: &ReadError) {
        self.push(error.code, &error.reason, Some(error.position), error.exceeded);
    }

    /// Not every error has a place.
    pub fn push(&mut self, code: &str, reason: &str, position: Option<Position>, exceeded: Option<Exceeded>) {
        self.write_succeeded();
        self.code.append_value(code);
        self.reason.append_value(reason);
        let place = [|p: Position| p.offset, |p: Position| p.line, |p: Position| p.column]
            .map(|of| position.map(|position| of(position) as u64));
        let limit = [exceeded.map(|e| e.value), exceeded.map(|e| e.limit)];
        for (column, number) in self.numbers.iter_mut().zip(place.into_iter().chain(limit)) {
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
            // Columns that are all null are one column.
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

/// The refusals of a batch, one row each: which one it was, and all that an exception would tell.
pub struct Refusals {
    /// What the first column counts: `message` or `row`.
    of: &'static str,
    which: UInt32Builder,
    errors: Outcomes,
}

impl Refusals {
    pub fn new(of: &'static str) -> Refusals {
        Refusals { of, which: UInt32Builder::new(), errors: Outcomes::default() }
    }

    pub fn push_read(&mut self, which: usize, error: &ReadError) {
        self.which.append_value(which as u32);
        self.errors.fail(error);
    }

    pub fn push_query(&mut self, which: usize, error: &QueryError) {
        self.which.append_value(which as u32);
        self.errors.push(error.code, &error.reason, Some(error.position), error.exceeded);
    }

    pub fn finish(mut self) -> RecordBatch {
        let which: Column = (self.of, Arc::new(self.which.finish()), false);
        record_batch(std::iter::once(which).chain(self.errors.finish()), [])
    }
}
