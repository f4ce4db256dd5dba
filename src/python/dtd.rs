//! DTDs that a user gives.

use std::cell::RefCell;

use pyo3::prelude::*;

use super::error::raise_read;
use crate::document::dtd;
use crate::limits::Limits;

pub fn read(
    py: Python<'_>,
    text: &[u8],
    limits: &Limits,
    resolve: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    // What `resolve` raises is what the caller sees, not that the entity is absent.
    let raised = RefCell::new(None);
    let ask = |system_id: &str| {
        let answer = resolve?.call1((system_id,)).and_then(|answer| answer.extract::<Option<Vec<u8>>>());
        answer.unwrap_or_else(|error| {
            raised.borrow_mut().get_or_insert(error);
            None
        })
    };
    let read = dtd::read_external(text, limits, &ask);
    match raised.into_inner() {
        Some(error) => Err(error),
        None => Ok(read.map_err(|error| raise_read(py, &error))?.to_json()),
    }
}
