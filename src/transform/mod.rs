//! Matches → output: each transformation that a message concerns, in the form it asks for.
//!
//! | file | what |
//! |---|---|
//! | `network.rs` | plans: transformations as operators that they share |
//! | `claims.rs`, `schema.rs`, `rewrite.rs` | what plans may leave out, by the query and by a DTD |
//! | `streams.rs` | lines as the shared automaton found them |
//! | `run.rs`, `climb.rs`, `values.rs`, `results.rs` | the operators, run on a message |
//! | `construct.rs` | groups of nodes → output |
//! | `report.rs` | which operators ran, for people |
//! | `transformer.rs` | the whole way, for a matcher |

pub mod claims;
mod climb;
pub mod construct;
pub mod network;
pub mod report;
mod results;
mod rewrite;
mod run;
pub mod schema;
pub mod shared;
mod streams;
#[cfg(test)]
mod tests;
pub mod transformer;
mod values;
