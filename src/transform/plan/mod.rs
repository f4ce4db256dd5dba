//! Transformations → a network of operators that they share.
//!
//! | file | what |
//! |---|---|
//! | `network.rs` | plans a transformation onto the network |
//! | `operators.rs` | the operators, each identified by its signature, and their plans |
//! | `tuples.rs` | compiles transformations that are evaluated tuple by tuple |
//! | `interner.rs` | signature → operator number, so that equal operators are one |
//! | `claims.rs` | which operators need no sorting or duplicate elimination |
//! | `schema.rs`, `rewrite.rs` | the element graph of a DTD; paths without redundant `//` |

mod claims;
mod interner;
mod network;
mod operators;
mod rewrite;
mod schema;
#[cfg(test)]
mod tests;
mod tuples;

pub use claims::{distinct, distinct_pairs, ordered};
pub use interner::Interner;
pub(super) use interner::OwnedBytes;
pub use network::{Network, SegmentContext};
pub use operators::Plan;
pub(super) use operators::{
    BindingSource, Bindings, BlockPlan, Condition, Constant, Group, OperatorId, Subject, TwigVariants,
};
pub use rewrite::{PathStart, rewrite};
pub use schema::{Conformance, Schema};
pub use tuples::{Compiled, TuplePlan};
