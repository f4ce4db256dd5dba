//! The file format of a segment: each part's writer beside its reader.

pub mod automaton;
pub mod columns;
pub mod constants;
pub mod file;
pub mod trie;
