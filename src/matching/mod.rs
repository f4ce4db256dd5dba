//! Document × segment → matching queries.

pub mod automaton;
pub mod candidates;
pub mod findings;
pub mod twigs;
pub mod values;
