//! DTDs: read by the kernel, external entities resolved by a Python function.

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
    // An exception of `resolve` reaches the caller; otherwise it would look like an absent entity.
    let raised = RefCell::new(None);
    let resolve_entity = |system_id: &str| {
        let answer = resolve?.call1((system_id,)).and_then(|answer| answer.extract::<Option<Vec<u8>>>());
        answer.unwrap_or_else(|error| {
            raised.borrow_mut().get_or_insert(error);
            None
        })
    };
    let read = dtd::read_external(text, limits, &resolve_entity);
    match raised.into_inner() {
        Some(error) => Err(error),
        None => Ok(read.map_err(|error| raise_read(py, &error))?.to_json()),
    }
}
