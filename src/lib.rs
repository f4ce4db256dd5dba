//! The kernel of tamis: the hot path, and nothing else.
//!
//! Two flows meet here. A *message* goes `document` → `matching` → `transform`; a *subscription* goes
//! `query` → `segment`; `engine` is the API above both. `data` holds the records that queries join with messages. Each
//! module imports only from those before it: `util`, `document`, `query`, `data`, `segment`, `matching`, `transform`, `engine`.
//!
//! The kernel reads and maps segment files and writes them, and does no other I/O. It has no clock and no
//! globals. It starts one thread, which parses queries ahead while a load or a merge lasts and has ended when
//! that call returns; so a process may fork between calls.

pub mod data;
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
pub mod tuning;
pub mod util;

#[cfg(feature = "python")]
mod python;
