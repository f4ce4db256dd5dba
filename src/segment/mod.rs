//! The segment: an immutable, compiled set of queries in flat arrays.

pub mod build;
pub mod format;
pub mod rows;
pub mod twig;
