//! The state of the class `Index`: the index, and the generations that its results refer to.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;

use super::error::raise_generation_error;
use crate::engine::generation::Generation;
use crate::engine::index::Index;
use crate::error::GenerationError;

/// Generations that are kept for `targets`: query numbers are valid in one generation.
pub const KEPT_GENERATIONS: usize = 8;

pub struct State {
    /// None while a thread is changing it.
    pub index: Option<Index>,
    /// The newest last; never empty.
    pub generations: VecDeque<Arc<Generation>>,
    /// Whether the index has changes that are not in the newest generation.
    pub changed: bool,
}

impl State {
    pub fn new(index: Index) -> State {
        let generations = VecDeque::from([index.generation().clone()]);
        State { index: Some(index), generations, changed: false }
    }

    pub fn newest(&self) -> Arc<Generation> {
        self.generations.back().expect("there is at least one generation").clone()
    }

    pub fn index(&mut self, py: Python<'_>) -> PyResult<&mut Index> {
        self.index.as_mut().ok_or_else(|| busy(py))
    }

    /// Puts the index back after a change, with its newest generation.
    pub fn put_back(&mut self, index: Index) {
        let newest = index.generation();
        if !Arc::ptr_eq(newest, &self.newest()) {
            if newest.number == self.newest().number {
                // The same queries with other local data.
                self.generations.pop_back();
            }
            self.generations.push_back(newest.clone());
            while self.generations.len() > KEPT_GENERATIONS {
                self.generations.pop_front();
            }
        }
        self.index = Some(index);
        self.changed = false;
    }
}

pub fn busy(py: Python<'_>) -> PyErr {
    let reason = "another thread is changing the index, or was when this process was forked";
    raise_generation_error(py, &GenerationError::new("busy", reason.to_string()))
}
