//! Parts that know nothing of XML messages or queries: sets, hashing, prefetching, character classes, mapped files.

pub mod bitset;
pub mod epoch_set;
pub mod hash;
pub mod prefetch;
pub(crate) mod simd;
pub mod storage;
pub mod xml_chars;
