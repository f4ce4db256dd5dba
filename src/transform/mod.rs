//! Matches → output: each transformation that a message concerns, in the form it asks for.
//!
//! | file | what |
//! |---|---|
//! | `network.rs`, `operators.rs` | plans: transformations as operators that they share |
//! | `claims.rs`, `schema.rs`, `rewrite.rs` | what plans may leave out, by the query and by a DTD |
//! | `streams.rs` | lines as the shared automaton found them |
//! | `run.rs`, `take.rs`, `climb.rs`, `values.rs`, `results.rs` | the operators, run on a message |
//! | `program.rs` | a transformation as a flat program of bytes and slots, made once |
//! | `construct.rs` | groups of nodes → output, by that program |
//! | `copy.rs`, `reproduce.rs`, `declarations.rs`, `extras.rs` | nodes of a message, copied with their namespaces |
//! | `escape.rs` | characters as they are written in XML |
//! | `same.rs` | outputs that are there already |
//! | `transformer.rs` | the whole way, for a matcher |
//! | `report.rs` | which operators ran, for people |

pub mod claims;
mod climb;
pub mod construct;
mod copy;
mod declarations;
mod escape;
mod extras;
pub mod network;
pub mod operators;
mod program;
pub mod report;
mod reproduce;
pub mod results;
pub mod rewrite;
pub mod run;
mod same;
pub mod schema;
pub mod shared;
pub mod streams;
mod take;
#[cfg(test)]
mod tests;
pub mod transformer;
mod values;

pub use construct::{ConstructError, Constructor, Lists};
pub use copy::Copyist;
pub use program::Program;
