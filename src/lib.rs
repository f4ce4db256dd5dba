//! The kernel of tamis: the hot path, and nothing else.
//!
//! Two flows meet here. A *message* goes `document` → `matching` → `transform`; a *subscription* goes
//! `query` → `index`. The kernel writes and maps segment files and does no other I/O; it has no
//! clock, no globals and no threads of its own, so it is safe to fork.

pub mod document;
pub mod engine;
pub mod error;
pub mod ids;
pub mod limits;
pub mod matching;
pub mod naive;
pub mod query;
pub mod segment;
pub mod transform;
mod tuning;
pub mod util;

#[cfg(feature = "python")]
mod python;
