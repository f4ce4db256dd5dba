//! Python arguments → values of the kernel.

use std::collections::BTreeMap;

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use super::error::raise_query;
use crate::document::{Envelope, Message};
use crate::error::{Position, QueryError};
use crate::limits::Limits;
use crate::query::Namespaces;

/// A `dict` of prefixes, or `None`.
pub struct NamespacesArg(pub Namespaces);

impl<'py> FromPyObject<'_, 'py> for NamespacesArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<NamespacesArg> {
        let mut namespaces = Namespaces::new();
        let map = given.extract::<Option<BTreeMap<String, String>>>().map_err(|error| {
            if !error.is_instance_of::<PyUnicodeEncodeError>(given.py()) {
                return error;
            }
            let reason = "the prefix map contains half of a surrogate pair".to_string();
            let position = Position::default();
            raise_query(given.py(), &QueryError { code: "namespace", reason, position, exceeded: None })
        });
        for (prefix, uri) in map?.unwrap_or_default() {
            namespaces.bind(&prefix, &uri).map_err(|error| raise_query(given.py(), &error))?;
        }
        Ok(NamespacesArg(namespaces))
    }
}

/// The text of a query. A `str` with a lone surrogate is refused as a query.
pub struct QueryText(pub String);

impl<'py> FromPyObject<'_, 'py> for QueryText {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<QueryText> {
        let py = given.py();
        given.extract::<String>().map(QueryText).map_err(|error| {
            if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
                return error;
            }
            // What is before the surrogate is valid.
            let start = error.value(py).getattr("start").and_then(|start| start.extract::<isize>());
            let before =
                start.and_then(|start| given.get_item(PySlice::new(py, 0, start, 1))?.extract::<String>());
            let before = before.unwrap_or_default();
            let position = Position::of(before.as_bytes(), before.len());
            let reason = "half of a surrogate pair is not a character".to_string();
            raise_query(py, &QueryError { code: "syntax", reason, position, exceeded: None })
        })
    }
}

/// A `tamis.Limits`, by its attributes.
pub struct LimitsArg(pub Limits);

impl<'py> FromPyObject<'_, 'py> for LimitsArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<LimitsArg> {
        let number = |field: &str| given.getattr(field)?.extract::<usize>();
        let flag = |field: &str| given.getattr(field)?.extract::<bool>();
        let document = number("document")?;
        Ok(LimitsArg(Limits {
            known_utf8: false,
            document,
            depth: number("depth")?,
            attributes: number("attributes")?,
            namespaces: number("namespaces")?,
            name: number("name")?,
            text: given.getattr("text")?.extract::<Option<usize>>()?.unwrap_or(document),
            internal_subset: flag("internal_subset")?,
            skip_unread_entities: flag("skip_unread_entities")?,
            expansion: number("expansion")?,
            bindings: number("bindings")?,
            tuples: number("tuples")?,
            output: number("output")?,
            outputs: number("outputs")?,
            work: number("work")?,
        }))
    }
}

/// The envelope of a message: source, topic, time received, and the headers.
#[derive(FromPyObject)]
pub struct EnvelopeArg(Option<String>, Option<String>, Option<String>, Vec<(String, String)>);

impl EnvelopeArg {
    /// A message in its envelope, if it is given.
    pub fn message<'m>(bytes: &'m [u8], envelope: Option<&'m EnvelopeArg>) -> Message<'m> {
        Message { bytes, envelope: envelope.map(EnvelopeArg::envelope) }
    }

    fn envelope(&self) -> Envelope<'_> {
        let EnvelopeArg(source, topic, received, headers) = self;
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Envelope {
            source: source.as_deref(),
            topic: topic.as_deref(),
            received: received.as_deref(),
            headers,
        }
    }
}
