//! Parts that know nothing of XML messages or queries: sets, hashing, prefetching, character classes.

pub mod bitset;
pub mod epoch_set;
pub mod hash;
pub mod prefetch;
pub(crate) mod simd;
pub mod xml_chars;
