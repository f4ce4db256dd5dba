//! Structure: runs a segment's path automaton over a document.

pub mod dfa;
pub mod masks;
pub mod names;
pub mod nfa;
mod node_sets;
