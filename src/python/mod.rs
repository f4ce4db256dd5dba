//! The extension module `tamis._kernel`: the only folder that names PyO3 and Arrow.
//!
//! Only `tamis.engine` calls it. Plain values cross the border (numbers, strings, tuples, Arrow tables), and the
//! engine turns them into the public types. Batches of messages and their results cross as Arrow, in a few calls
//! per batch and none per message, with the interpreter released: `match_batch`, then `targets` for its matches.
//! ASTs stay on this side.
//!
//! | module | what it does |
//! |---|---|
//! | `arrow` | imports and exports Arrow arrays by the C data interface |
//! | `arguments`, `messages`, `subscriptions` | Python's arguments → values of the kernel, validated |
//! | `index` | the class `Index`: a pool of matchers, and the last generations |
//! | `matches`, `selection`, `transform` | results of matching and transforming → tables |
//! | `nodes`, `decompose` | documents and queries → tables |
//! | `error` | errors → exceptions and columns |
//! | `explain`, `dtd`, `naive` | results as tuples, JSON and lists |
//! | `tables` | columns → a record batch |

mod arguments;
mod arrow;
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

    use super::arguments::{LimitsArg, NamespacesArg};
    use super::arrow::Exported;
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
    fn check(py: Python<'_>, text: &str, namespaces: NamespacesArg) -> PyResult<(String, String)> {
        let query = query::parse(text, &namespaces.0).map_err(|error| raise_query(py, &error))?;
        Ok((query.id().to_string(), query.canonical()))
    }

    /// Nodes, attributes, tag paths and errors of a batch of messages, as four tables.
    #[pyfunction]
    fn read_batch(
        py: Python<'_>,
        messages: Messages,
        limits: LimitsArg,
    ) -> PyResult<(Exported, Exported, Exported, Exported)> {
        let tables = py.detach(|| nodes::read_batch(&messages, &limits.0));
        Ok((tables.nodes.into(), tables.attributes.into(), tables.tag_paths.into(), tables.errors.into()))
    }

    /// Reads a batch and returns only the number of its elements. For measuring how long reading takes.
    #[pyfunction]
    fn read_all(py: Python<'_>, messages: Messages, limits: LimitsArg) -> u64 {
        py.detach(|| nodes::read_all(&messages, &limits.0))
    }

    /// Decomposes queries: the tables of `tamis.Decomposition`.
    #[pyfunction(name = "decompose")]
    fn decompose_queries(py: Python<'_>, queries: Vec<String>, namespaces: NamespacesArg) -> Vec<Exported> {
        let tables = py.detach(|| decompose::tables(&queries, &namespaces.0));
        tables.into_iter().map(Exported::from).collect()
    }

    /// For each message, the positions of the queries that match it by the naive evaluator.
    #[pyfunction]
    fn naive_batch(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: NamespacesArg,
        limits: LimitsArg,
    ) -> PyResult<Vec<Vec<usize>>> {
        naive::match_batch(py, &queries, &messages, &namespaces.0, &limits.0)
    }

    /// For each message and each query, the output by the naive evaluator, or the code of the error.
    #[pyfunction]
    fn naive_transform(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: NamespacesArg,
        limits: LimitsArg,
        output_limit: usize,
    ) -> PyResult<Vec<Vec<naive::Transformed>>> {
        naive::transform_batch(py, &queries, &messages, &namespaces.0, &limits.0, output_limit)
    }

    /// Reads a DTD into JSON. `resolve` returns the text of an external parameter entity by its system identifier.
    #[pyfunction]
    fn read_dtd(
        py: Python<'_>,
        text: &[u8],
        limits: LimitsArg,
        resolve: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        dtd::read(py, text, &limits.0, resolve.as_ref())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
