//! The sizes of an index, for `tamis.Stats`.

use crate::engine::cache_stats::{CacheBytes, CacheStats};
use crate::engine::generation::{Generation, Part};

/// In the order of `tamis.Stats`.
pub type Stats = (u64, usize, usize, usize, usize, usize, usize, usize, u64, usize, [usize; 7]);

/// The sizes of a generation, of the caches of idle matchers, and of the sample.
pub fn stats(generation: &Generation, cache: &CacheStats, sampled: usize) -> Stats {
    let parts = generation.parts();
    let sum = |of: &dyn Fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
    let CacheBytes { automaton, probes, values, transformations, memo, twigs, records } = cache.bytes;
    (
        generation.number,
        parts.len(),
        generation.live(),
        sum(&Part::live_queries),
        sum(&|part| part.segment.bytes().len()),
        sum(&|part| part.segment.text_bytes().len()),
        cache.bytes.bounded(),
        cache.states,
        cache.clears,
        sampled,
        [automaton, probes, values, transformations, memo, twigs, records],
    )
}
