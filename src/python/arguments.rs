//! Python arguments → values of the kernel.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use super::error::raise_query;
use crate::limits::Limits;
use crate::query::Namespaces;

/// A `dict` of prefixes, or `None`.
pub struct NamespacesArg(pub Namespaces);

impl<'py> FromPyObject<'_, 'py> for NamespacesArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<NamespacesArg> {
        let mut namespaces = Namespaces::new();
        for (prefix, uri) in given.extract::<Option<BTreeMap<String, String>>>()?.unwrap_or_default() {
            namespaces.bind(&prefix, &uri).map_err(|error| raise_query(given.py(), &error))?;
        }
        Ok(NamespacesArg(namespaces))
    }
}

/// A `tamis.Limits`, by its attributes.
pub struct LimitsArg(pub Limits);

impl<'py> FromPyObject<'_, 'py> for LimitsArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<LimitsArg> {
        let number = |field: &str| given.getattr(field)?.extract::<usize>();
        let flag = |field: &str| given.getattr(field)?.extract::<bool>();
        Ok(LimitsArg(Limits {
            document: number("document")?,
            depth: number("depth")?,
            attributes: number("attributes")?,
            namespaces: number("namespaces")?,
            name: number("name")?,
            text: number("text")?,
            internal_subset: flag("internal_subset")?,
            skip_unread_entities: flag("skip_unread_entities")?,
            expansion: number("expansion")?,
            bindings: number("bindings")?,
            output: number("output")?,
            outputs: number("outputs")?,
        }))
    }
}
