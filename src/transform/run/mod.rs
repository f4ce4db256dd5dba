//! Network × message → the elements that each block binds and the nodes that its return paths select.
//!
//! | file | what |
//! |---|---|
//! | `accept_sets.rs` | states of the automaton → the elements at the end of each linear path |
//! | `evaluate.rs` | join, selection, semijoin: the elements that a block binds |
//! | `ancestors.rs` | from the end of a linear path up to the elements that its earlier steps bind |
//! | `value_index.rs` | values of a message, indexed for the constants that are compared with them |
//! | `return_nodes.rs` | outer-join-select: the nodes of each return path, for each bound element |
//! | `tuples.rs` | evaluates other transformations tuple by tuple |
//! | `twigs.rs` | predicates and paths that streams cannot decide |
//! | `results.rs`, `element_sets.rs` | the results of operators, cached for one message |
//! | `selected.rs` | what one transformation selects: the input of `output/` |

mod accept_sets;
mod ancestors;
mod element_sets;
mod evaluate;
mod results;
mod return_nodes;
mod selected;
pub mod tuples;
mod twigs;
mod value_index;

pub use accept_sets::ElementsByAcceptSet;
pub use evaluate::Evaluator;
pub use results::Results;
pub(super) use selected::LimitExceeded;
pub use selected::Selected;
pub use twigs::TwigEvaluator;
