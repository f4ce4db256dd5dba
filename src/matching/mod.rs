//! Document × segment → matching queries.
//!
//! | room or file | |
//! |---|---|
//! | `automaton/` | which conditions hold and what anchors bind: a lazy DFA, or the NFA without a cache |
//! | `values/` | caches for the values of messages |
//! | `findings` | the result of the automaton |
//! | `joiner` | adds the records of local data that a message meets to its document |
//! | `met_records` | the records that values met before, as bytes |
//! | `candidates/` | rows whose access test holds, tested |
//! | `twigs/` | candidates that branch where several elements are bound: settled or verified |
//! | `budget` | the limit on the work of one query |
//! | `work` | how much work a message was |

pub mod automaton;
pub mod budget;
pub mod candidates;
pub mod findings;
#[cfg(test)]
mod fixture;
pub mod joiner;
mod met_records;
pub mod twigs;
pub mod values;
pub mod work;
