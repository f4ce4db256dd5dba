//! Caches of what the values of messages were found to satisfy.

pub mod probe_cache;
pub mod value_cache;
