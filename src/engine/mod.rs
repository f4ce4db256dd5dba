//! The engine: the set of standing queries as it changes, and matching batches against it.

pub mod explain;
pub mod generation;
pub mod index;
pub mod matcher;
mod parse_ahead;
pub mod sample;
pub mod snapshot;
