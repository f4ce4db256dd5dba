//! Structure: runs a segment's path automaton over a document.
//!
//! | file | |
//! |---|---|
//! | `dfa/` | the lazy DFA, with a bounded cache |
//! | `nfa` | the same without a cache |
//! | `names` | names of messages → labels of a segment |
//! | `masks` | sets of conditions or anchors, as bit masks |
//! | `node_sets` | sets of trie nodes |

pub mod dfa;
pub mod masks;
pub mod names;
pub mod nfa;
mod node_sets;
