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
//! | `index`, `index_state`, `matchers` | the class `Index`: the last generations, and a pool of matchers |
//! | `local_data` | the class `Data`: records that queries join with messages |
//! | `pairs` | lists of numbers from Arrow |
//! | `matches`, `selection`, `transform` | results of matching and transforming → tables |
//! | `nodes`, `values`, `decompose` | documents and queries → tables |
//! | `shards` | shards: writing them, placing queries, the shards that messages visit |
//! | `error` | errors → exceptions and columns |
//! | `explain`, `dtd`, `naive` | results as tuples, JSON and lists |
//! | `transcoder` | bytes in any encoding → UTF-8, for files that Python splits |
//! | `tables` | columns → a record batch |

mod arguments;
mod arrow;
mod decompose;
mod dtd;
mod error;
mod explain;
mod index;
mod index_state;
mod local_data;
mod matchers;
mod matches;
mod messages;
mod naive;
mod nodes;
mod pairs;
mod selection;
mod shards;
mod stats;
mod subscriptions;
mod tables;
mod transcoder;
mod transform;
mod values;

use pyo3::pymodule;

#[pymodule]
mod _kernel {
    use std::path::PathBuf;

    use pyo3::prelude::*;

    use super::arguments::{LimitsArg, NamespacesArg, QueryText};
    use super::arrow::Exported;
    use super::error::raise_query;
    #[pymodule_export]
    use super::index::Index;
    #[pymodule_export]
    use super::local_data::{Data, DataChange, DataWriter};
    use super::messages::Messages;
    #[pymodule_export]
    use super::shards::{place_queries, shard_files, write_routing, write_shards};
    #[pymodule_export]
    use super::transcoder::Transcoder;
    #[pymodule_export]
    use super::transform::Schema;
    use super::{decompose, dtd, local_data, naive, nodes, transcoder, values};
    use crate::document::charset::Charset;
    use crate::engine::local_data::check_sizes;
    use crate::query;
    use crate::query::weaken::NecessaryLine;

    /// Code, reason, line and column of a warning.
    type Warning = (&'static str, String, usize, usize);

    /// The id, the canonical text and the warnings of a query, and the local data that it names.
    #[pyfunction]
    fn check(
        py: Python<'_>,
        text: QueryText,
        namespaces: NamespacesArg,
    ) -> PyResult<(String, String, Vec<Warning>, Vec<String>)> {
        let parsed = query::parse_with_warnings(&text.0, &namespaces.0);
        let (query, warnings, data) = parsed.map_err(|error| raise_query(py, &error))?;
        let warnings = warnings
            .into_iter()
            .map(|warning| (warning.code, warning.reason, warning.position.line, warning.position.column));
        let names = data.into_iter().map(|one| one.name).collect();
        Ok((query.id().to_string(), query.canonical(), warnings.collect(), names))
    }

    /// Refuses a query whose local data cannot serve it: `sizes` are the records of each data set that it may name.
    #[pyfunction]
    fn check_data(
        py: Python<'_>,
        text: QueryText,
        namespaces: NamespacesArg,
        sizes: Vec<(String, u64)>,
    ) -> PyResult<()> {
        check_sizes(&text.0, &namespaces.0, &sizes.into_iter().collect())
            .map_err(|error| raise_query(py, &error))
    }

    /// Nodes, attributes, tag paths and errors of a batch of messages, as four tables.
    #[pyfunction]
    fn read_batch(
        py: Python<'_>,
        messages: Messages,
        limits: LimitsArg,
    ) -> PyResult<(Exported, Exported, Exported, Exported)> {
        let limits = messages.limits(limits);
        let tables = py.detach(|| nodes::read_batch(&messages, &limits));
        Ok((tables.nodes.into(), tables.attributes.into(), tables.tag_paths.into(), tables.errors.into()))
    }

    /// The value tables of a batch of messages, in batches of rows, and the errors.
    #[pyfunction]
    fn read_values(py: Python<'_>, messages: Messages, limits: LimitsArg) -> (Vec<Exported>, Exported) {
        let limits = messages.limits(limits);
        let (batches, errors) = py.detach(|| values::read_values(&messages, &limits));
        (batches.into_iter().map(Exported::from).collect(), errors.into())
    }

    /// Reads a batch and returns only the number of its elements. For measuring how long reading takes.
    #[pyfunction]
    fn read_all(py: Python<'_>, messages: Messages, limits: LimitsArg) -> u64 {
        let limits = messages.limits(limits);
        py.detach(|| nodes::read_all(&messages, &limits))
    }

    /// Decomposes queries: the tables of `tamis.Decomposition`.
    #[pyfunction(name = "decompose")]
    fn decompose_queries(py: Python<'_>, queries: Vec<String>, namespaces: NamespacesArg) -> Vec<Exported> {
        let tables = py.detach(|| decompose::tables(&queries, &namespaces.0));
        tables.into_iter().map(Exported::from).collect()
    }

    /// The lines of an alternative, each with its path.
    type Alternative = Vec<(String, String)>;

    /// The weakening of a query: its text, and its alternatives.
    #[pyfunction]
    fn weaken(py: Python<'_>, text: &str, namespaces: NamespacesArg) -> PyResult<(String, Vec<Alternative>)> {
        let query = query::parse(text, &namespaces.0).map_err(|error| raise_query(py, &error))?;
        let weak = query::weaken::weaken(&query);
        let pairs = |lines: Vec<NecessaryLine>| -> Alternative {
            lines.into_iter().map(|one| (one.line, one.path)).collect()
        };
        Ok((weak.text, weak.alternatives.into_iter().map(pairs).collect()))
    }

    /// For each message, the positions of the queries that match it by the naive evaluator.
    #[pyfunction]
    fn naive_batch(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: NamespacesArg,
        limits: LimitsArg,
        data: Vec<(String, Py<Data>)>,
    ) -> PyResult<Vec<Vec<usize>>> {
        naive::match_batch(py, &queries, &messages, &namespaces.0, &messages.limits(limits), &data)
    }

    /// For each message and each query, the output by the naive evaluator, or the code of the error.
    #[pyfunction]
    fn naive_transform(
        py: Python<'_>,
        queries: Vec<String>,
        messages: Messages,
        namespaces: NamespacesArg,
        limits: LimitsArg,
        data: Vec<(String, Py<Data>)>,
        output_limit: usize,
    ) -> PyResult<Vec<Vec<naive::Transformed>>> {
        let limits = messages.limits(limits);
        naive::transform_batch(py, &queries, &messages, &namespaces.0, &limits, &data, output_limit)
    }

    /// Writes a version of local data, whose segments have any format, anew.
    #[pyfunction]
    fn rebuild_data(
        py: Python<'_>,
        directory: PathBuf,
        manifest: &str,
        limits: LimitsArg,
    ) -> PyResult<local_data::Files> {
        local_data::rebuild(py, directory, manifest, limits.0)
    }

    /// The label of a text's encoding by its first bytes, and the length of its byte order mark.
    #[pyfunction]
    fn detect_encoding(py: Python<'_>, head: &[u8]) -> PyResult<(String, usize)> {
        transcoder::detect_encoding(py, head)
    }

    /// The one label of an encoding that has several.
    #[pyfunction]
    fn canonical_label(label: &str) -> Option<String> {
        Charset::for_label(label).map(Charset::label)
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
