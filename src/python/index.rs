//! The class `Index`.
//!
//! Long work runs with the interpreter released and without a lock: a thread takes the index (or a matcher)
//! out of its mutex and puts it back afterwards. So a process may fork at any time (Spark forks its Python
//! workers): the child inherits no locked mutex, and matches against the last generation.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::LargeListArray;
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyTuple;

use super::arguments::{LimitsArg, NamespacesArg};
use super::arrow::{Exported, import_array};
use super::error::{ErrorTable, raise_index, raise_query, raise_read};
use super::matches::{MatchRows, expand_targets};
use super::messages::Messages;
use super::selection;
use super::subscriptions::Subscriptions;
use super::transform::{OutputRows, Schema};
use crate::engine::explain::explain;
use crate::engine::generation::{Generation, Part};
use crate::engine::matcher::{CacheStats, Matcher, Matches, Walked};
use crate::engine::snapshot;
use crate::error::{IndexError, ReadError};
use crate::limits::Limits;
use crate::matching::twigs::verify::Verifier;
use crate::query::parse;
use crate::transform::Outputs;
use crate::tuning::Tuning;

/// Generations that are kept for `targets`: query numbers are valid in one generation.
const KEPT_GENERATIONS: usize = 8;

/// In the order of `tamis.Stats`.
type Stats = (u64, usize, usize, usize, usize, usize, usize, usize, u64, usize);

#[pyclass(frozen, module = "tamis._kernel")]
pub struct Index {
    state: Mutex<State>,
    /// Idle matchers, at most one for each thread that has matched.
    matchers: Mutex<Vec<Matcher>>,
    tuning: Tuning,
}

struct State {
    /// None while a thread is changing it.
    index: Option<crate::engine::index::Index>,
    /// The newest last; never empty.
    generations: VecDeque<Arc<Generation>>,
    /// Whether the index has changes that are not in the newest generation.
    changed: bool,
}

#[pymethods]
impl Index {
    #[new]
    fn new(cache_bytes: usize) -> Index {
        Index::with_engine(crate::engine::index::Index::new(), Tuning::new(cache_bytes))
    }

    /// An empty index that always takes the methods for large inputs, whatever their size. For tests.
    #[staticmethod]
    fn for_large_inputs(cache_bytes: usize) -> Index {
        Index::with_engine(crate::engine::index::Index::new(), Tuning::for_large_inputs(cache_bytes))
    }

    /// Registers a target; the id of its query.
    fn insert(
        &self,
        py: Python<'_>,
        target: u64,
        query: &str,
        tenant: &str,
        namespaces: NamespacesArg,
    ) -> PyResult<String> {
        let mut state = self.state();
        let inserted = state.index(py)?.insert(target, tenant, query, &namespaces.0);
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
        namespaces: NamespacesArg,
    ) -> PyResult<Exported> {
        let loaded = self.change(py, |index| index.load(subscriptions.iter(), &namespaces.0))?;
        let refused = loaded.map_err(|error| raise_index(py, &error))?;
        let mut refusals = ErrorTable::new("row");
        refused.iter().for_each(|refused| refusals.push_query(refused.row, &refused.error));
        Ok(refusals.finish().into())
    }

    /// Whether there are changes to `commit`.
    #[getter]
    fn changed(&self) -> bool {
        self.state().changed
    }

    /// Makes changes visible to matching.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |index| index.commit().map(drop))?.map_err(|error| raise_index(py, &error))
    }

    /// Merges all segments into one.
    fn merge(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |index| index.merge().map(drop))?.map_err(|error| raise_index(py, &error))
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

    /// The targets of the queries that a message matches, ascending.
    fn r#match(
        &self,
        py: Python<'_>,
        message: PyBackedBytes,
        tenant: &str,
        limits: LimitsArg,
    ) -> PyResult<Vec<u64>> {
        let generation = self.state().newest();
        let matched = py.detach(|| {
            let mut targets = Ok(Vec::new());
            self.with_matcher(|matcher| {
                matcher.match_batch(&generation, tenant, std::iter::once(&*message), &limits.0, |outcome| {
                    targets = outcome.map(|matches| generation.targets_of(&matches.queries));
                });
            });
            targets
        });
        let targets = matched.map_err(|error| raise_read(py, &error))?;
        self.offer_to_sample(tenant, std::iter::once(&*message));
        Ok(targets)
    }

    /// One row per message: the numbers of the matching queries in this generation, how many
    /// candidates there were, or the error.
    fn match_batch(&self, py: Python<'_>, messages: Messages, tenant: &str, limits: LimitsArg) -> Exported {
        let generation = self.state().newest();
        let mut good = Vec::with_capacity(messages.len());
        let batch = py.detach(|| {
            let mut rows = MatchRows::new(messages.len());
            self.with_matcher(|matcher| {
                matcher.match_batch(&generation, tenant, messages.or_empty(), &limits.0, |outcome| {
                    good.push(outcome.is_ok());
                    match outcome {
                        Ok(matches) => rows.push(matches),
                        Err(error) => rows.fail(&messages.error_at(rows.len(), error)),
                    }
                });
            });
            rows.finish(generation.number)
        });
        let offered = messages.or_empty().zip(good).filter_map(|(message, good)| good.then_some(message));
        self.offer_to_sample(tenant, offered);
        batch.into()
    }

    /// The nodes that matching queries select, up to `limit` for each message and query; and errors.
    fn match_elements(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        limit: usize,
    ) -> (Exported, Exported) {
        let mut nodes = selection::NodeRows::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.nodes(twig);
        let push = |number, walked: &Walked<'_, _>| nodes.push(number, walked, limit);
        let (generation, errors) = self.walk(py, &messages, tenant, &limits.0, walk, push);
        (nodes.finish(generation).into(), errors)
    }

    /// The bindings of those nodes, one node per step, up to `limit` for each message and query; and errors.
    fn match_bindings(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        limit: usize,
    ) -> (Exported, Exported) {
        let mut bindings = selection::BindingRows::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.tuples(twig, limit);
        let push = |number, walked: &Walked<'_, _>| bindings.push(number, walked);
        let (generation, errors) = self.walk(py, &messages, tenant, &limits.0, walk, push);
        (bindings.finish(generation).into(), errors)
    }

    /// As `match_batch`; then rows for the outputs of matching transformations, and the outputs.
    fn transform_batch(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: LimitsArg,
        schema: Option<Bound<'_, Schema>>,
    ) -> (Exported, Exported, Exported) {
        let generation = self.state().newest();
        let schema = schema.map(|schema| schema.get().0.clone());
        let (matches, output_rows, outputs) = py.detach(|| {
            let (mut rows, mut output_rows) = (MatchRows::new(messages.len()), OutputRows::new());
            self.with_matcher(|matcher| {
                let sink = |outcome: Result<(&Matches, &Outputs), ReadError>| match outcome {
                    Ok((matches, outputs)) => {
                        output_rows.push(rows.len(), outputs);
                        rows.push(matches);
                    }
                    Err(error) => rows.fail(&messages.error_at(rows.len(), error)),
                };
                let (given, schema) = (messages.or_empty(), schema.as_ref());
                matcher.transform_batch(&generation, tenant, given, &limits.0, schema, sink);
            });
            let (output_rows, outputs) = output_rows.finish(generation.number);
            (rows.finish(generation.number), output_rows, outputs)
        });
        (matches.into(), output_rows.into(), outputs.into())
    }

    #[allow(clippy::too_many_arguments)]
    /// Why a query matches a message, or why not: the fields of `tamis.Explanation`.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        message: PyBackedBytes,
        query: &str,
        tenant: &str,
        namespaces: NamespacesArg,
        limits: LimitsArg,
        schema: Option<Bound<'py, Schema>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let generation = self.state().newest();
        let query = parse(query, &namespaces.0).map_err(|error| raise_query(py, &error))?;
        let schema = schema.map(|schema| schema.get().0.clone());
        let explained =
            py.detach(|| explain(&query, &message, &limits.0, &generation, tenant, schema.as_ref()));
        super::explain::to_tuple(py, explained.map_err(|error| raise_read(py, &error))?)
    }

    /// Writes the newest generation to a directory; its number there, and here.
    fn snapshot(&self, py: Python<'_>, directory: PathBuf) -> PyResult<(u64, u64)> {
        let generation = self.state().newest();
        let written = py.detach(|| snapshot::write(&generation, &directory));
        Ok((written.map_err(|error| raise_index(py, &error))?, generation.number))
    }

    /// An index over a generation of a directory, and that generation's number.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        generation: Option<u64>,
        cache_bytes: usize,
    ) -> PyResult<Index> {
        let opened = py.detach(|| snapshot::open(&directory, generation, &[]));
        let generation = opened.map_err(|error| raise_index(py, &error))?;
        Ok(Index::with_engine(crate::engine::index::Index::of(generation), Tuning::new(cache_bytes)))
    }

    /// Goes over to another generation of a directory, with the segments and caches that both have.
    fn advance(&self, py: Python<'_>, directory: PathBuf, generation: u64) -> PyResult<()> {
        let advanced = self.change(py, |index| {
            let opened = snapshot::open(&directory, Some(generation), index.generation().parts())?;
            index.switch_to(opened);
            Ok(())
        })?;
        advanced.map_err(|error: IndexError| raise_index(py, &error))
    }

    /// Sizes of the index and of the idle matchers' caches: the fields of `tamis.Stats`.
    fn stats(&self) -> Stats {
        let state = self.state();
        let generation = state.newest();
        let parts = generation.parts();
        let sum = |of: &dyn Fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
        let matchers = self.matchers.try_lock();
        let caches = matchers.iter().flat_map(|matchers| matchers.iter().map(Matcher::cache_stats));
        let cache = caches.fold(CacheStats::default(), |sum, one| CacheStats {
            bytes: sum.bytes + one.bytes,
            states: sum.states + one.states,
            clears: sum.clears + one.clears,
        });
        (
            generation.number,
            parts.len(),
            generation.live(),
            sum(&Part::live_queries),
            sum(&|part| part.segment.bytes().len()),
            sum(&|part| part.segment.text_bytes().len()),
            cache.bytes,
            cache.states,
            cache.clears,
            state.index.as_ref().map_or(0, |index| index.sample.len()),
        )
    }

    /// For each list of query numbers of a generation, the targets of these queries, ascending.
    fn targets(&self, py: Python<'_>, queries: Bound<'_, PyAny>, generation: u64) -> PyResult<Exported> {
        let found = self.state().generations.iter().find(|one| one.number == generation).cloned();
        let Some(generation) = found else {
            let reason = format!(
                "generation {generation} is no longer kept; call `targets` before {KEPT_GENERATIONS} more changes"
            );
            return Err(raise_index(py, &IndexError::new("old-generation", reason)));
        };
        let lists = import_array(&queries, |given| match &given {
            DataType::LargeList(item) if *item.data_type() == DataType::UInt32 => Ok(given),
            other => {
                let reason = format!("queries are the lists that match_batch returns, not {other}");
                Err(PyValueError::new_err(reason))
            }
        })?;
        let lists = LargeListArray::from(lists);
        Ok(py.detach(|| expand_targets(&generation, &lists)).into())
    }
}

impl Index {
    fn with_engine(index: crate::engine::index::Index, tuning: Tuning) -> Index {
        let generations = VecDeque::from([index.generation().clone()]);
        let state = State { index: Some(index), generations, changed: false };
        Index { state: Mutex::new(state), matchers: Mutex::default(), tuning }
    }

    /// Lock it briefly, and never with the interpreter released.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the index with the interpreter released.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut crate::engine::index::Index) -> T + Send,
    ) -> PyResult<T> {
        let mut state = self.state();
        state.index(py)?;
        let mut index = state.index.take();
        drop(state);
        let done = py.detach(|| index.as_mut().map(work));
        let mut state = self.state();
        if let Some(index) = &index
            && index.generation().number != state.newest().number
        {
            state.generations.push_back(index.generation().clone());
            while state.generations.len() > KEPT_GENERATIONS {
                state.generations.pop_front();
            }
        }
        state.index = index;
        state.changed = false;
        done.ok_or_else(|| busy(py))
    }

    /// Walks the matching queries of messages and passes the results of each message to `push`. Returns the
    /// number of the generation, and the errors of messages that cannot be read.
    fn walk<T>(
        &self,
        py: Python<'_>,
        messages: &Messages,
        tenant: &str,
        limits: &Limits,
        walk: impl Fn(&mut Verifier<'_>, u32) -> T + Send,
        mut push: impl FnMut(usize, &Walked<'_, T>) + Send,
    ) -> (u64, Exported) {
        let generation = self.state().newest();
        let errors = py.detach(|| {
            let mut errors = ErrorTable::new("message");
            let mut number = 0;
            self.with_matcher(|matcher| {
                matcher.walk_batch(&generation, tenant, messages.or_empty(), limits, walk, |outcome| {
                    match outcome {
                        Ok(walked) => push(number, &walked),
                        Err(error) => errors.push_read(number, &messages.error_at(number, error)),
                    }
                    number += 1;
                });
            });
            errors.finish()
        });
        (generation.number, errors.into())
    }

    /// Lends an idle matcher, or a new one: it does not wait for the lock, as a fork may have left it locked.
    fn with_matcher(&self, work: impl FnOnce(&mut Matcher)) {
        let idle = self.matchers.try_lock().ok().and_then(|mut matchers| matchers.pop());
        let mut matcher = idle.unwrap_or_else(|| Matcher::new(self.tuning));
        work(&mut matcher);
        if let Ok(mut matchers) = self.matchers.try_lock() {
            matchers.push(matcher);
        }
    }

    /// Offers messages to the sample, unless a thread is changing the index.
    fn offer_to_sample<'m>(&self, tenant: &str, messages: impl Iterator<Item = &'m [u8]>) {
        if let Some(index) = &mut self.state().index {
            messages.for_each(|message| index.sample.offer(tenant, message));
        }
    }
}

impl State {
    fn newest(&self) -> Arc<Generation> {
        self.generations.back().expect("there is at least one generation").clone()
    }

    fn index(&mut self, py: Python<'_>) -> PyResult<&mut crate::engine::index::Index> {
        self.index.as_mut().ok_or_else(|| busy(py))
    }
}

fn busy(py: Python<'_>) -> PyErr {
    let reason = "another thread is changing the index, or was when this process was forked";
    raise_index(py, &IndexError::new("busy", reason.to_string()))
}
