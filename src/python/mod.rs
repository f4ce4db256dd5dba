//! The Python face: the only folder that names PyO3. Batches cross it as Arrow, one crossing per
//! batch, with the interpreter released; ASTs do not cross it.
//!
//! What crosses is plain (strings, numbers, Arrow); `tamis.engine` makes the public types of it.

mod arrow;
mod convert;
mod decompose;
mod dtd;
mod error;
mod explain;
mod index;
mod matches;
mod messages;
mod naive;
mod nodes;
mod selection;
mod subscriptions;
mod tables;
mod transform;

use pyo3::pymodule;

#[pymodule]
mod _kernel {
    use pyo3::prelude::*;

    use super::arrow::Exported;
    use super::convert::{GivenLimits, GivenNamespaces};
    use super::error::raise_query;
    #[pymodule_export]
    use super::index::Index;
    use super::messages::Messages;
    #[pymodule_export]
    use super::transform::Schema;
    use super::{decompose, dtd, naive, nodes};
    use crate::query;

    /// The id and the canonical text of a query.
    #[pyfunction]
    fn check(py: Python<'_>, text: &str, namespaces: GivenNamespaces) -> PyResult<(String, String)> {
        let query = query::parse(text, &namespaces.0).map_err(|error| raise_query(py, &error))?;
        Ok((query.id().to_string(), query.canonical()))
    }

    /// Nodes, attributes, tag paths and errors of a batch of messages, as four tables.
    #[pyfunction]
    fn read_batch(
        py: Python<'_>,
        messages: Messages,
        limits: GivenLimits,
    ) -> PyResult<(Exported, Exported, Exported, Exported)> {
        let tables = py.detach(|| nodes::read_batch(&messages, &limits.0));
        Ok((tables.nodes.into(), tables.attributes.into(), tables.tag_paths.into(), tables.errors.into()))
    }

    /// Reads a batch and forgets it: how many elements there were. To measure reading alone.
    #[pyfunction]
    fn read_all(py: Python<'_>, messages: Messages, limits: GivenLimits) -> u64 {
        py.detach(|| nodes::read_all(&messages, &limits.0))
    }

    /// Queries taken apart: the tables of `tamis.Decomposition`.
    #[pyfunction(name = "decompose")]
    fn decompose_queries(py: Python<'_>, queries: Vec<String>, namespaces: GivenNamespaces) -> Vec<Exported> {
        let tables = py.detach(|| decompose::tables(&queries, &namespaces.0));
        tables.into_iter().map(Exported::from).collect()
    }

    /// For each message, the places of the queries that the slow evaluator finds true.
    #[pyfunction]
    fn naive_batch(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: GivenNamespaces,
        limits: GivenLimits,
    ) -> PyResult<Vec<Vec<usize>>> {
        naive::match_batch(py, &queries, &messages, &namespaces.0, &limits.0)
    }

    /// For each message and each query, what the slow evaluator makes of it: an output, or the code of
    /// why there is none.
    #[pyfunction]
    fn naive_transform(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: GivenNamespaces,
        limits: GivenLimits,
        output_limit: usize,
    ) -> PyResult<Vec<Vec<naive::Transformed>>> {
        naive::transform_batch(py, &queries, &messages, &namespaces.0, &limits.0, output_limit)
    }

    /// A DTD as JSON. `resolve` is asked for the text of external parameter entities.
    #[pyfunction]
    fn read_dtd(
        py: Python<'_>,
        text: &[u8],
        limits: GivenLimits,
        resolve: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        dtd::read(py, text, &limits.0, resolve.as_ref())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
