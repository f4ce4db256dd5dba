//! Parts that know nothing of XML messages or queries: sets, hashing, prefetching, character classes.

pub mod bitset;
pub mod prefetch;
pub(crate) mod simd;
pub mod xml_chars;
