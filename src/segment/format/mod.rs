//! The file format of a segment. Each part has its writer and its reader in one file; rows and twigs, which
//! are parts too, have separate folders beside this one.
//!
//! | file | |
//! |---|---|
//! | `columns` | the flat arrays that a segment consists of, listed once |
//! | `file` | header, sections, mapping into memory; the file of query texts |
//! | `labels` | name tests as numbers |
//! | `trie` | the trie of all linear paths: the automaton |
//! | `entries` | the subjects that are tested below a trie node |
//! | `constants` | the constants of equality tests, in hash tables |

pub mod columns;
pub mod constants;
pub mod entries;
pub mod file;
pub mod labels;
pub mod trie;

/// No label, no node, no condition: a column has no value here.
pub const NONE: u32 = u32::MAX;
