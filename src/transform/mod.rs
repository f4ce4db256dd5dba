//! Matches → output XML: runs each matching transformation on a message and writes what it constructs.
//!
//! | room | what it does |
//! |---|---|
//! | `plan/` | transformations → a network of operators that they share |
//! | `run/` | network × message → the elements that each block binds and the nodes of its return paths |
//! | `output/` | these nodes → bytes; equal outputs are written once |
//!
//! `transformer.rs` walks through the three for a matcher; `explain.rs` reports which operators ran.

mod explain;
pub mod output;
pub mod plan;
pub mod run;
mod transformer;

pub use explain::OperatorReport;
pub use plan::{Conformance, Schema};
pub use transformer::{MatchedMessage, Outputs, Transformer};
