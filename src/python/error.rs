//! Errors of the kernel, as exceptions of `tamis.errors` and as rows of a table.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::nodes::record_batch;
use crate::error::{Exceeded, IndexError, Position, QueryError, ReadError};

pub fn raise_query(py: Python<'_>, error: &QueryError) -> PyErr {
    raise_positioned(
        py,
        "QueryError",
        error.code,
        &error.reason,
        error.position,
        error.exceeded,
    )
}

pub fn raise_read(py: Python<'_>, error: &ReadError) -> PyErr {
    raise_positioned(
        py,
        "ReadError",
        error.code,
        &error.reason,
        error.position,
        error.exceeded,
    )
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
    (
        code,
        reason,
        position.offset,
        position.line,
        position.column,
        value,
        limit,
    )
        .into_pyobject(py)
        .and_then(|arguments| raise(py, class, arguments))
        .unwrap_or_else(|error| error)
}

fn raise<'py>(py: Python<'py>, class: &str, arguments: Bound<'py, PyTuple>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(
        py.import("tamis.errors")?.getattr(class)?.call1(arguments)?,
    ))
}

/// Refusals of a batch, one row each: which one it was, and all that an exception would tell.
pub struct Refusals {
    /// What the first column counts: `message` or `row`.
    of: &'static str,
    which: UInt32Builder,
    code: StringBuilder,
    reason: StringBuilder,
    place: [UInt64Builder; 3],
    value: UInt64Builder,
    limit: UInt64Builder,
}

impl Refusals {
    pub fn new(of: &'static str) -> Refusals {
        Refusals {
            of,
            which: UInt32Builder::new(),
            code: StringBuilder::new(),
            reason: StringBuilder::new(),
            place: Default::default(),
            value: UInt64Builder::new(),
            limit: UInt64Builder::new(),
        }
    }

    pub fn push_read(&mut self, which: usize, error: &ReadError) {
        self.push(which, error.code, &error.reason, error.position, error.exceeded);
    }

    pub fn push_query(&mut self, which: usize, error: &QueryError) {
        self.push(which, error.code, &error.reason, error.position, error.exceeded);
    }

    fn push(
        &mut self,
        which: usize,
        code: &str,
        reason: &str,
        position: Position,
        exceeded: Option<Exceeded>,
    ) {
        self.which.append_value(which as u32);
        self.code.append_value(code);
        self.reason.append_value(reason);
        for (column, number) in self
            .place
            .iter_mut()
            .zip([position.offset, position.line, position.column])
        {
            column.append_value(number as u64);
        }
        self.value.append_option(exceeded.map(|e| e.value));
        self.limit.append_option(exceeded.map(|e| e.limit));
    }

    pub fn finish(mut self) -> RecordBatch {
        let [mut offset, mut line, mut column] = self.place;
        record_batch([
            (self.of, Arc::new(self.which.finish()) as ArrayRef, false),
            ("code", Arc::new(self.code.finish()), false),
            ("reason", Arc::new(self.reason.finish()), false),
            ("offset", Arc::new(offset.finish()), false),
            ("line", Arc::new(line.finish()), false),
            ("column", Arc::new(column.finish()), false),
            ("value", Arc::new(self.value.finish()), true),
            ("limit", Arc::new(self.limit.finish()), true),
        ])
    }
}
