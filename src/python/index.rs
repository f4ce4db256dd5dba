//! The class `Index`.
//!
//! Long work runs with the interpreter released and without a lock: a thread takes the index (or a matcher)
//! out of its mutex and puts it back afterwards. So a process may fork at any time (Spark forks its Python
//! workers): the child inherits no locked mutex, and matches against the last generation.

mod work;

use std::path::PathBuf;
use std::sync::Mutex;

use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyTuple;

use super::arguments::{EnvelopeArg, LimitsArg, NamespacesArg, QueryText};
use super::arrow::Exported;
use super::error::{raise_generation_error, raise_query, raise_read};
use super::index_state::{KEPT_GENERATIONS, State};
use super::local_data::{Cause, Data, GivenData, cause_of, tenant_data};
use super::matchers::Matchers;
use super::matches::{MatchRows, expand_targets};
use super::messages::Messages;
use super::pairs::{Pairs, import_lists};
use super::selection;
use super::shards::{self, VisitRows};
use super::stats::{Stats, stats};
use super::subscriptions::{Subscriptions, refusals_of};
use super::transform::{OutputRows, Schema};
use crate::engine::explain::explain;
use crate::engine::local_data::parse_and_check;
use crate::engine::matcher::{Matcher, Matches, SelectedNodes};
use crate::engine::snapshot::{self, ShardName};
use crate::error::{GenerationError, ReadError};
use crate::ids::GenerationQuery;
use crate::matching::twigs::verify::Verifier;
use crate::transform::Outputs;
use crate::tuning::Tuning;

#[pyclass(frozen, module = "tamis._kernel")]
pub struct Index {
    state: Mutex<State>,
    matchers: Matchers,
}

#[pymethods]
impl Index {
    #[new]
    fn new(cache_bytes: usize) -> Index {
        Index::with_engine(crate::engine::index::Index::new(), Tuning::new(cache_bytes))
    }

    /// An empty index that always takes the methods for large inputs. For tests.
    #[staticmethod]
    fn for_large_inputs(cache_bytes: usize) -> Index {
        Index::with_engine(crate::engine::index::Index::new(), Tuning::for_large_inputs(cache_bytes))
    }

    /// Registers a target; the id of its query.
    fn insert(
        &self,
        py: Python<'_>,
        target: u64,
        query: QueryText,
        tenant: &str,
        namespaces: NamespacesArg,
    ) -> PyResult<String> {
        let mut state = self.state();
        let inserted = state.index(py)?.insert(target, tenant, &query.0, &namespaces.0);
        let id = inserted.map_err(|error| raise_query(py, &error))?;
        state.changed = true;
        Ok(id.to_string())
    }

    /// Removes a target; whether it was there.
    fn remove(&self, py: Python<'_>, target: u64) -> PyResult<bool> {
        let mut state = self.state();
        let removed = state.index(py)?.remove(target);
        state.changed |= removed;
        Ok(removed)
    }

    /// Registers many targets; the rows that were refused.
    fn load(
        &self,
        py: Python<'_>,
        subscriptions: Subscriptions,
        namespaces: Vec<NamespacesArg>,
    ) -> PyResult<Exported> {
        let rows = subscriptions.rows(&namespaces)?;
        let refused = self.change(py, |index| index.load(rows))?;
        Ok(refusals_of(&refused).into())
    }

    /// As `load`, for queries that were checked when they were registered.
    fn load_registered(
        &self,
        py: Python<'_>,
        subscriptions: Subscriptions,
        namespaces: Vec<NamespacesArg>,
    ) -> PyResult<Exported> {
        let rows = subscriptions.rows(&namespaces)?;
        let refused = self.change(py, |index| index.load_registered(rows))?;
        Ok(refusals_of(&refused).into())
    }

    /// Attaches local data of a tenant, or replaces it.
    fn attach(&self, py: Python<'_>, tenant: &str, name: &str, data: &Bound<'_, Data>) -> PyResult<()> {
        let set = data.get().set.clone();
        self.change(py, |index| index.attach(tenant, name, set))
    }

    /// Replaces the local data of all tenants.
    fn replace_data(&self, py: Python<'_>, data: GivenData<'_>) -> PyResult<()> {
        let data = tenant_data(&data);
        self.change(py, |index| index.replace_data(data))
    }

    /// Whether there are changes to `commit`.
    #[getter]
    fn changed(&self) -> bool {
        self.state().changed
    }

    /// Makes changes visible to matching.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |index| index.commit().map(drop))
    }

    /// Replaces the sample of messages; a tenant for each.
    fn set_sample(&self, messages: Messages, tenants: Vec<String>) {
        if let Some(index) = &mut self.state().index {
            index.sample.replace(tenants.iter().map(String::as_str).zip(messages.or_empty()));
        }
    }

    /// Merges all segments into one.
    fn merge(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |index| index.merge().map(drop))
    }

    /// Compiles the segment again whose candidates fall most by the current sample, if that saves the share of all.
    fn refile(&self, py: Python<'_>, least_share: f64) -> PyResult<bool> {
        self.change(py, |index| index.refile(least_share))
    }

    /// Whether a segment turned out to be damaged, or a call panicked: then the index is to be opened again.
    #[getter]
    fn damaged(&self) -> bool {
        self.matchers.damaged()
    }

    /// In a child process: changes that another thread was making remain in the parent.
    fn after_fork(&self) {
        let mut state = self.state();
        state.changed &= state.index.is_some();
    }

    /// The number of the newest generation.
    #[getter]
    fn generation(&self) -> u64 {
        self.state().newest().number
    }

    /// Whether a query of the newest generation asks for the envelope of a message.
    #[getter]
    fn asks_envelope(&self) -> bool {
        self.state().newest().asks_envelope()
    }

    /// The targets of the queries that match, ascending; those of queries that failed; why, if not by the work limit.
    fn r#match(
        &self,
        py: Python<'_>,
        message: PyBackedBytes,
        envelope: Option<EnvelopeArg>,
        tenant: &str,
        limits: LimitsArg,
    ) -> PyResult<(Vec<u64>, Vec<u64>, Option<Cause>)> {
        let generation = self.state().newest();
        let message = EnvelopeArg::message(&message, envelope.as_ref());
        let matched = py
            .detach(|| {
                let mut targets = None;
                let work = |matcher: &mut Matcher, targets: &mut Option<_>| {
                    let messages = std::iter::once(message.clone()).take(targets.is_none() as usize);
                    matcher.match_batch(&generation, tenant, messages, &limits.0, |outcome| {
                        let of = |queries: &[GenerationQuery]| generation.targets_of(queries);
                        *targets = Some(outcome.map(|Matches { queries, failed, .. }| {
                            (of(queries), of(failed), cause_of(failed, &generation, tenant))
                        }));
                    });
                };
                let refuse = |targets: &mut Option<_>, error: &ReadError| *targets = Some(Err(error.clone()));
                self.matchers
                    .run(&generation, &mut targets, work, refuse)
                    .map(|()| targets.expect("an outcome for each message"))
            })
            .map_err(|error| raise_generation_error(py, &error))?;
        let targets = matched.map_err(|error| raise_read(py, &error))?;
        self.offer_to_sample(tenant, std::iter::once(message));
        Ok(targets)
    }

    /// One row per message: the numbers of the matching queries in this generation, how many
    /// candidates there were, or the error.
    fn match_batch(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
    ) -> PyResult<Exported> {
        let generation = self.state().newest();
        let limits = messages.limits(limits);
        let (batch, good) = py
            .detach(|| {
                let mut done = (MatchRows::new(messages.len()), Vec::with_capacity(messages.len()));
                let work = |matcher: &mut Matcher, (rows, good): &mut (MatchRows, Vec<bool>)| {
                    let rest = messages.or_empty().skip(rows.len());
                    matcher.match_batch(&generation, tenant, rest, &limits, |outcome| {
                        good.push(outcome.is_ok());
                        match outcome {
                            Ok(matches) => rows.push(matches),
                            Err(error) => rows.fail(&messages.error_at(rows.len(), error)),
                        }
                    });
                };
                let refuse = |(rows, good): &mut (MatchRows, Vec<bool>), error: &ReadError| {
                    good.push(false);
                    rows.fail(error);
                };
                self.matchers
                    .run(&generation, &mut done, work, refuse)
                    .map(|()| (done.0.finish(generation.number), done.1))
            })
            .map_err(|error| raise_generation_error(py, &error))?;
        let offered = messages.or_empty().zip(good).filter_map(|(message, good)| good.then_some(message));
        self.offer_to_sample(tenant, offered);
        Ok(batch.into())
    }

    /// One row per message, as of `match_batch`: which queries of its targets match it, all of them verified.
    fn match_pairs(
        &self,
        py: Python<'_>,
        messages: Messages,
        pairs: Bound<'_, PyAny>,
        tenant: &str,
        limits: LimitsArg,
    ) -> PyResult<Exported> {
        let (generation, limits) = (self.state().newest(), messages.limits(limits));
        generation.check_open().map_err(|error| raise_generation_error(py, &error))?;
        let pairs = Pairs::import(&pairs, messages.len())?;
        let work = |matcher: &mut Matcher, rows: &mut MatchRows| {
            let rest = messages.or_empty().zip(pairs.iter()).skip(rows.len());
            matcher.match_pairs(&generation, tenant, rest, &limits, |outcome| match outcome {
                Ok(matches) => rows.push(matches),
                Err(error) => rows.fail(&messages.error_at(rows.len(), error)),
            });
        };
        let mut rows = MatchRows::new(messages.len());
        let run = || self.matchers.run(&generation, &mut rows, work, MatchRows::fail);
        py.detach(run).map_err(|error| raise_generation_error(py, &error))?;
        Ok(rows.finish(generation.number).into())
    }

    /// The nodes that matching queries select, up to `limit` for each message and query; and errors.
    fn match_elements(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        limit: usize,
    ) -> PyResult<(Exported, Exported)> {
        let mut nodes = selection::NodeRows::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.nodes(twig);
        let push = |number, walked: &SelectedNodes<'_, _>| nodes.push(number, walked, limit);
        let (generation, errors) = self.walk(py, &messages, tenant, &messages.limits(limits), walk, push)?;
        Ok((nodes.finish(generation).into(), errors))
    }

    /// The bindings of those nodes, one node per step, up to `limit` for each message and query; and errors.
    fn match_bindings(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        limit: usize,
    ) -> PyResult<(Exported, Exported)> {
        let mut bindings = selection::BindingRows::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.tuples(twig, limit);
        let push = |number, walked: &SelectedNodes<'_, _>| bindings.push(number, walked);
        let (generation, errors) = self.walk(py, &messages, tenant, &messages.limits(limits), walk, push)?;
        Ok((bindings.finish(generation).into(), errors))
    }

    /// As `match_batch`; then rows for the outputs of matching transformations, and the outputs.
    fn transform_batch(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        schema: Option<Bound<'_, Schema>>,
    ) -> PyResult<(Exported, Exported, Exported)> {
        let generation = self.state().newest();
        let limits = messages.limits(limits);
        let schema = schema.map(|schema| schema.get().0.clone());
        let (matches, output_rows, outputs) = py
            .detach(|| {
                let mut done = (MatchRows::new(messages.len()), OutputRows::new());
                let work = |matcher: &mut Matcher, (rows, output_rows): &mut (MatchRows, OutputRows)| {
                    let rest = messages.or_empty().skip(rows.len());
                    let sink = |outcome: Result<(&Matches, &Outputs), ReadError>| match outcome {
                        Ok((matches, outputs)) => {
                            output_rows.push(rows.len(), outputs);
                            rows.push(matches);
                        }
                        Err(error) => rows.fail(&messages.error_at(rows.len(), error)),
                    };
                    matcher.transform_batch(&generation, tenant, rest, &limits, schema.as_ref(), sink);
                };
                let refuse = |(rows, _): &mut (MatchRows, _), error: &ReadError| rows.fail(error);
                self.matchers.run(&generation, &mut done, work, refuse).map(|()| {
                    let (output_rows, outputs) = done.1.finish(generation.number);
                    (done.0.finish(generation.number), output_rows, outputs)
                })
            })
            .map_err(|error| raise_generation_error(py, &error))?;
        Ok((matches.into(), output_rows.into(), outputs.into()))
    }

    #[allow(clippy::too_many_arguments)]
    /// Why a query matches a message, or why not: the fields of `tamis.Explanation`.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        message: PyBackedBytes,
        envelope: Option<EnvelopeArg>,
        query: QueryText,
        tenant: &str,
        namespaces: NamespacesArg,
        limits: LimitsArg,
        schema: Option<Bound<'py, Schema>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let generation = self.state().newest();
        let query = parse_and_check(&query.0, &namespaces.0, generation.data(tenant))
            .map_err(|error| raise_query(py, &error))?;
        let schema = schema.map(|schema| schema.get().0.clone());
        let message = EnvelopeArg::message(&message, envelope.as_ref());
        let work = || explain(&query, &message, &limits.0, &generation, tenant, schema.as_ref());
        let explained = py
            .detach(|| self.matchers.guarded(&generation, work))
            .map_err(|error| raise_generation_error(py, &error))?;
        super::explain::to_tuple(py, explained.map_err(|error| raise_read(py, &error))?)
    }

    /// Writes the newest generation to a directory; its number there, and here.
    fn snapshot(&self, py: Python<'_>, directory: PathBuf) -> PyResult<(u64, u64)> {
        let generation = self.state().newest();
        let write = || snapshot::write(&generation, &directory);
        let written = py.detach(|| self.matchers.guarded(&generation, write).and_then(|written| written));
        Ok((written.map_err(|error| raise_generation_error(py, &error))?, generation.number))
    }

    /// An index over a generation of a directory. It shares the mapped segments of another index.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        generation: Option<u64>,
        cache_bytes: usize,
        beside: Option<&Index>,
        shards: Option<Vec<u32>>,
        open_bytes: Option<usize>,
    ) -> PyResult<Index> {
        let known = beside.map(|index| index.state().newest()).unwrap_or_default();
        let opened = py.detach(|| snapshot::open_some(&directory, generation, &known, shards.as_deref()));
        let generation = opened.map_err(|error| raise_generation_error(py, &error))?;
        let tuning = Tuning::new(cache_bytes);
        let tuning = Tuning { open_bytes: open_bytes.unwrap_or(tuning.open_bytes), ..tuning };
        Ok(Index::with_engine(crate::engine::index::Index::of(generation), tuning))
    }

    /// Writes the index as a shard, with its summary: the name, and the number of queries.
    fn write_shard(&self, py: Python<'_>, directory: PathBuf, summary_bytes: usize) -> PyResult<ShardName> {
        let generation = self.state().newest();
        let write = || snapshot::write_shard(&generation, &directory, summary_bytes);
        py.detach(|| self.matchers.guarded(&generation, write).and_then(|written| written))
            .map_err(|error| raise_generation_error(py, &error))
    }

    /// The targets with their tenants and queries.
    fn rows(&self, py: Python<'_>) -> PyResult<Exported> {
        let generation = self.state().newest();
        py.detach(|| self.matchers.guarded(&generation, || shards::rows(&generation)).and_then(|rows| rows))
            .map_err(|error| raise_generation_error(py, &error))
    }

    /// Of each shard its name, how many queries it has, and whether it is open; none if there is one shard.
    #[getter]
    fn shards(&self) -> Vec<(String, u64, bool)> {
        let generation = self.state().newest();
        let shards = generation.shards().map(|shards| {
            let all = (0..).zip(&shards.all);
            all.map(|(at, (name, queries))| (name.clone(), *queries, shards.open.contains(at))).collect()
        });
        shards.unwrap_or_default()
    }

    /// The shards that each message visits.
    fn route(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
    ) -> PyResult<Exported> {
        let generation = self.state().newest();
        let limits = messages.limits(limits);
        let routed = py.detach(|| {
            let mut done = VisitRows::default();
            let work = |matcher: &mut Matcher, rows: &mut VisitRows| {
                let rest = messages.or_empty().skip(rows.len());
                matcher.route_batch(&generation, tenant, rest, &limits, |outcome| match outcome {
                    Ok((shards, work)) => rows.push(shards, work),
                    Err(_) => rows.push_none(),
                });
            };
            let refuse = |rows: &mut VisitRows, _: &ReadError| rows.push_none();
            self.matchers.run(&generation, &mut done, work, refuse).map(|()| done.finish())
        });
        routed.map_err(|error| raise_generation_error(py, &error))
    }

    /// Goes over to another generation of a directory, with the segments and caches that both have.
    fn advance(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        generation: u64,
        shards: Option<Vec<u32>>,
    ) -> PyResult<()> {
        self.change(py, |index| {
            let known = index.generation().clone();
            let opened = snapshot::open_some(&directory, Some(generation), &known, shards.as_deref())?;
            index.switch_to(opened);
            Ok(())
        })
    }

    /// Sizes of the index and of the idle matchers' caches: the fields of `tamis.Stats`.
    fn stats(&self) -> Stats {
        let state = self.state();
        let generation = state.newest();
        let sampled = state.index.as_ref().map_or(0, |index| index.sample.len());
        stats(&generation, &self.matchers.cache_stats(), sampled)
    }

    /// For each list of query numbers of a generation, the targets of these queries, ascending.
    fn targets(&self, py: Python<'_>, queries: Bound<'_, PyAny>, generation: u64) -> PyResult<Exported> {
        let found = self.state().generations.iter().find(|one| one.number == generation).cloned();
        let Some(generation) = found else {
            let reason = format!(
                "generation {generation} is no longer kept; call `targets` before {KEPT_GENERATIONS} more changes"
            );
            return Err(raise_generation_error(py, &GenerationError::new("old-generation", reason)));
        };
        let lists =
            import_lists(&queries, &DataType::UInt32, "queries are the lists that match_batch returns")?;
        let targets =
            py.detach(|| self.matchers.guarded(&generation, || expand_targets(&generation, &lists)));
        Ok(targets.map_err(|error| raise_generation_error(py, &error))?.into())
    }
}
