//! The index, for Python.
//!
//! Long work happens with the interpreter released and with no lock held: the index is taken out
//! of its place and put back, the matcher likewise. So a process that forks in the middle of it
//! (Spark forks its Python workers) leaves no lock behind that nobody will open; the child matches
//! against the last generation.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::LargeListArray;
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyTuple;

use super::arrow::{Exported, import_array};
use super::convert::{GivenLimits, GivenNamespaces};
use super::error::{Refusals, raise_index, raise_query, raise_read};
use super::matches::{Rows, expand};
use super::messages::Messages;
use super::selection;
use super::subscriptions::Subscriptions;
use super::transform::{Made, Schema};
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

/// So many generations back the numbers of a match can still be turned into targets.
const REMEMBERED: usize = 8;

/// In the order of `tamis.Stats`.
type Stats = (u64, usize, usize, usize, usize, usize, usize, usize, u64, usize);

#[pyclass(frozen, module = "tamis._kernel")]
pub struct Index {
    state: Mutex<State>,
    /// Matchers at rest, one for each thread that has matched.
    matchers: Mutex<Vec<Matcher>>,
    tuning: Tuning,
}

struct State {
    /// None while a thread changes it.
    index: Option<crate::engine::index::Index>,
    /// The newest last; never empty.
    generations: VecDeque<Arc<Generation>>,
    /// Whether the index has changes that the newest generation does not show.
    changed: bool,
}

#[pymethods]
impl Index {
    #[new]
    fn new(cache_bytes: usize) -> Index {
        Index::around(crate::engine::index::Index::new(), Tuning::new(cache_bytes))
    }

    /// An empty index that always takes the methods for large inputs, whatever their size. For tests.
    #[staticmethod]
    fn for_large_inputs(cache_bytes: usize) -> Index {
        Index::around(crate::engine::index::Index::new(), Tuning::for_large_inputs(cache_bytes))
    }

    /// Registers a target; the id of its query.
    fn insert(
        &self,
        py: Python<'_>,
        target: u64,
        query: &str,
        tenant: &str,
        namespaces: GivenNamespaces,
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
        namespaces: GivenNamespaces,
    ) -> PyResult<Exported> {
        let loaded = self.change(py, |index| index.load(subscriptions.iter(), &namespaces.0))?;
        let refused = loaded.map_err(|error| raise_index(py, &error))?;
        let mut refusals = Refusals::new("row");
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

    /// Makes one segment of all.
    fn merge(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |index| index.merge().map(drop))?.map_err(|error| raise_index(py, &error))
    }

    /// In a child process: changes that another thread was making stayed with the parent.
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
        limits: GivenLimits,
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
        self.offer(tenant, std::iter::once(&*message));
        Ok(targets)
    }

    /// One row per message: the numbers of the matching queries in this generation, how many
    /// candidates there were, or the error.
    fn match_batch(&self, py: Python<'_>, messages: Messages, tenant: &str, limits: GivenLimits) -> Exported {
        let generation = self.state().newest();
        let mut good = Vec::with_capacity(messages.len());
        let batch = py.detach(|| {
            let mut rows = Rows::new(messages.len());
            self.with_matcher(|matcher| {
                matcher.match_batch(&generation, tenant, messages.or_empty(), &limits.0, |outcome| {
                    good.push(outcome.is_ok());
                    match outcome {
                        Ok(matches) => rows.push(&matches.queries, matches.work.candidates),
                        Err(error) => rows.fail(&messages.explain(rows.len(), error)),
                    }
                });
            });
            rows.finish(generation.number)
        });
        let offered = messages.or_empty().zip(good).filter_map(|(message, good)| good.then_some(message));
        self.offer(tenant, offered);
        batch.into()
    }

    /// The nodes that matching queries select, up to `limit` for each message and query; and errors.
    fn match_elements(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: GivenLimits,
        limit: usize,
    ) -> (Exported, Exported) {
        let mut nodes = selection::Nodes::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.nodes(twig);
        let push = |number, walked: &Walked<'_, _>| nodes.push(number, walked, limit);
        let (generation, errors) = self.walk(py, &messages, tenant, &limits.0, walk, push);
        (nodes.finish(generation).into(), errors)
    }

    /// The ways to those nodes, one node per step, up to `limit` for each message and query; and errors.
    fn match_bindings(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: GivenLimits,
        limit: usize,
    ) -> (Exported, Exported) {
        let mut bindings = selection::Bindings::default();
        let walk = |verifier: &mut Verifier<'_>, twig| verifier.tuples(twig, limit);
        let push = |number, walked: &Walked<'_, _>| bindings.push(number, walked);
        let (generation, errors) = self.walk(py, &messages, tenant, &limits.0, walk, push);
        (bindings.finish(generation).into(), errors)
    }

    /// As `match_batch`; and what matching transformations make of the messages: rows, and the outputs
    /// they name.
    fn transform_batch(
        &self,
        py: Python<'_>,
        messages: Messages,
        tenant: &str,
        limits: GivenLimits,
        schema: Option<Bound<'_, Schema>>,
    ) -> (Exported, Exported, Exported) {
        let generation = self.state().newest();
        let schema = schema.map(|schema| schema.get().0.clone());
        let (matches, made, outputs) = py.detach(|| {
            let (mut rows, mut made) = (Rows::new(messages.len()), Made::new());
            self.with_matcher(|matcher| {
                let sink = |outcome: Result<(&Matches, &Outputs), ReadError>| match outcome {
                    Ok((matches, outputs)) => {
                        made.push(rows.len(), outputs);
                        rows.push(&matches.queries, matches.work.candidates);
                    }
                    Err(error) => rows.fail(&messages.explain(rows.len(), error)),
                };
                let (given, schema) = (messages.or_empty(), schema.as_ref());
                matcher.transform_batch(&generation, tenant, given, &limits.0, schema, sink);
            });
            let (made, outputs) = made.finish(generation.number);
            (rows.finish(generation.number), made, outputs)
        });
        (matches.into(), made.into(), outputs.into())
    }

    #[allow(clippy::too_many_arguments)]
    /// Why a query matches a message, or why not: plain values for `tamis.Explanation`.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        message: PyBackedBytes,
        query: &str,
        tenant: &str,
        namespaces: GivenNamespaces,
        limits: GivenLimits,
        schema: Option<Bound<'py, Schema>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let generation = self.state().newest();
        let query = parse(query, &namespaces.0).map_err(|error| raise_query(py, &error))?;
        let schema = schema.map(|schema| schema.get().0.clone());
        let explained =
            py.detach(|| explain(&query, &message, &limits.0, &generation, tenant, schema.as_ref()));
        super::explain::plain(py, explained.map_err(|error| raise_read(py, &error))?)
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
        Ok(Index::around(crate::engine::index::Index::of(generation), Tuning::new(cache_bytes)))
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

    /// What the index and the caches at rest amount to: plain values for `tamis.Stats`.
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

    /// For each list of query numbers of a generation, the targets they lead to, ascending.
    fn targets(&self, py: Python<'_>, queries: Bound<'_, PyAny>, generation: u64) -> PyResult<Exported> {
        let found = self.state().generations.iter().find(|one| one.number == generation).cloned();
        let Some(generation) = found else {
            let reason = format!(
                "generation {generation} is no longer known; expand matches before {REMEMBERED} more changes"
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
        Ok(py.detach(|| expand(&generation, &lists)).into())
    }
}

impl Index {
    fn around(index: crate::engine::index::Index, tuning: Tuning) -> Index {
        let generations = VecDeque::from([index.generation().clone()]);
        let state = State { index: Some(index), generations, changed: false };
        Index { state: Mutex::new(state), matchers: Mutex::default(), tuning }
    }

    /// Held for moments only, and never with the interpreter released.
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
            while state.generations.len() > REMEMBERED {
                state.generations.pop_front();
            }
        }
        state.index = index;
        state.changed = false;
        done.ok_or_else(|| busy(py))
    }

    /// Walks the matching queries of messages, and hands over what was found for each message that
    /// can be read. The number of the generation, and errors.
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
            let mut errors = Refusals::new("message");
            let mut number = 0;
            self.with_matcher(|matcher| {
                matcher.walk_batch(&generation, tenant, messages.or_empty(), limits, walk, |outcome| {
                    match outcome {
                        Ok(walked) => push(number, &walked),
                        Err(error) => errors.push_read(number, &messages.explain(number, error)),
                    }
                    number += 1;
                });
            });
            errors.finish()
        });
        (generation.number, errors.into())
    }

    /// Works with a matcher that nobody else has. A lock that is held is not waited for: a new
    /// matcher does as well.
    fn with_matcher(&self, work: impl FnOnce(&mut Matcher)) {
        let resting = self.matchers.try_lock().ok().and_then(|mut matchers| matchers.pop());
        let mut matcher = resting.unwrap_or_else(|| Matcher::new(self.tuning));
        work(&mut matcher);
        if let Ok(mut matchers) = self.matchers.try_lock() {
            matchers.push(matcher);
        }
    }

    /// Offers messages to the sample, unless somebody is changing the index.
    fn offer<'m>(&self, tenant: &str, messages: impl Iterator<Item = &'m [u8]>) {
        if let Some(index) = &mut self.state().index {
            messages.for_each(|message| index.sample.offer(tenant, message));
        }
    }
}

impl State {
    fn newest(&self) -> Arc<Generation> {
        self.generations.back().expect("there is always a generation").clone()
    }

    fn index(&mut self, py: Python<'_>) -> PyResult<&mut crate::engine::index::Index> {
        self.index.as_mut().ok_or_else(|| busy(py))
    }
}

fn busy(py: Python<'_>) -> PyErr {
    let reason = "another thread changes the index, or did so when this process was forked";
    raise_index(py, &IndexError::new("busy", reason.to_string()))
}
