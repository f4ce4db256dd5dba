//! What Python gives, as the kernel's own values.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use super::error::raise_query;
use crate::limits::Limits;
use crate::query::Namespaces;

/// A `dict` of prefixes, or `None`.
pub struct GivenNamespaces(pub Namespaces);

impl<'py> FromPyObject<'_, 'py> for GivenNamespaces {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<GivenNamespaces> {
        let mut namespaces = Namespaces::new();
        for (prefix, uri) in given.extract::<Option<BTreeMap<String, String>>>()?.unwrap_or_default() {
            namespaces.bind(&prefix, &uri).map_err(|error| raise_query(given.py(), &error))?;
        }
        Ok(GivenNamespaces(namespaces))
    }
}

/// A `tamis.Limits`, by its attributes.
pub struct GivenLimits(pub Limits);

impl<'py> FromPyObject<'_, 'py> for GivenLimits {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<GivenLimits> {
        let number = |field: &str| given.getattr(field)?.extract::<usize>();
        Ok(GivenLimits(Limits {
            document: number("document")?,
            depth: number("depth")?,
            attributes: number("attributes")?,
            namespaces: number("namespaces")?,
            name: number("name")?,
            text: number("text")?,
            internal_subset: given.getattr("internal_subset")?.extract()?,
            expansion: number("expansion")?,
            bindings: number("bindings")?,
            output: number("output")?,
            outputs: number("outputs")?,
        }))
    }
}
