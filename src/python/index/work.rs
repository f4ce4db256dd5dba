//! What the methods of `Index` share: changes, and walks over the nodes of matching queries.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::Index;
use crate::document::Message;
use crate::engine::matcher::SelectedNodes;
use crate::error::GenerationError;
use crate::limits::Limits;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;
use crate::python::arrow::Exported;
use crate::python::error::raise_generation_error;
use crate::python::index_state::{State, busy};
use crate::python::matchers::Matchers;
use crate::python::messages::Messages;
use crate::python::selection;
use crate::tuning::Tuning;

impl Index {
    pub(super) fn with_engine(index: crate::engine::index::Index, tuning: Tuning) -> Index {
        Index { state: Mutex::new(State::new(index)), matchers: Matchers::new(tuning) }
    }

    /// Lock it briefly, and never with the interpreter released.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the index with the interpreter released. After a panic, changes that were not committed are dropped.
    pub(super) fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut crate::engine::index::Index) -> Result<T, GenerationError> + Send,
    ) -> PyResult<T> {
        let mut state = self.state();
        state.index(py)?;
        let index = state.index.take();
        drop(state);
        let mut index = index.ok_or_else(|| busy(py))?;
        let (index, done) = py.detach(|| {
            let generation = index.generation().clone();
            let done = self.matchers.guarded(&generation, || work(&mut index));
            if done.is_err() {
                index.drop_changes();
            }
            (index, done.and_then(|done| done))
        });
        self.state().put_back(index);
        done.map_err(|error| raise_generation_error(py, &error))
    }

    /// Walks the matching queries of messages: the number of the generation, and the errors.
    pub(super) fn walk<T>(
        &self,
        py: Python<'_>,
        messages: &Messages,
        tenant: &str,
        limits: &Limits,
        walk: impl Fn(&mut Verifier<'_>, u32) -> Result<T, WorkLimit> + Sync,
        push: impl FnMut(usize, &SelectedNodes<'_, T>) + Send,
    ) -> PyResult<(u64, Exported)> {
        let generation = self.state().newest();
        let walked = || selection::walk(&self.matchers, &generation, messages, tenant, limits, &walk, push);
        let errors = py.detach(walked).map_err(|error| raise_generation_error(py, &error))?;
        Ok((generation.number, errors.into()))
    }

    /// Offers messages to the sample, unless a thread is changing the index.
    pub(super) fn offer_to_sample<'m>(&self, tenant: &str, messages: impl Iterator<Item = Message<'m>>) {
        if let Some(index) = &mut self.state().index {
            messages.for_each(|message| index.sample.offer(tenant, &message));
        }
    }
}
