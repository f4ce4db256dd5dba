//! Caches for the values of messages: the constants that they equal, and the conditions that they satisfy.
//!
//! | file | |
//! |---|---|
//! | `probe_cache` | probe and short value → the conditions that hold |
//! | `value_cache` | value → the constants that it equals, and its number |
//! | `short` | short values, packed into one word |

pub mod probe_cache;
pub mod short;
pub mod value_cache;
