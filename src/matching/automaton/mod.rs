//! Structure: runs a segment's path automaton over a document.

pub mod dfa;
pub mod names;
pub mod nfa;
