//! Statistics of the caches of a matcher: their memory, and how often they were cleared.

use std::ops::AddAssign;

/// The statistics of a matcher's caches.
#[derive(Clone, Copy, Default, Debug)]
pub struct CacheStats {
    /// Memory of each cache in bytes.
    pub bytes: CacheBytes,
    pub states: usize,
    pub clears: u64,
}

/// Memory in bytes, approximately. The automaton and the transformations are bounded by the capacity of the matcher;
/// the others have separate bounds, see `tuning`.
#[derive(Clone, Copy, Default, Debug)]
pub struct CacheBytes {
    /// States, accept sets, copied rows and the answers of probes by class.
    pub automaton: usize,
    /// The answers of probes by value.
    pub probes: usize,
    /// The constants that values equal.
    pub values: usize,
    /// Plans and buffers of transformations.
    pub transformations: usize,
    /// Buffers of what verification remembers during a message; they are kept for the next one.
    pub memo: usize,
    /// Twigs that were compiled on demand.
    pub twigs: usize,
    /// Records of local data that messages met.
    pub records: usize,
}

impl CacheBytes {
    /// The caches that the capacity of a matcher bounds.
    pub fn bounded(&self) -> usize {
        self.automaton + self.probes + self.transformations
    }
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: CacheStats) {
        let CacheStats { bytes, states, clears } = other;
        self.bytes.automaton += bytes.automaton;
        self.bytes.probes += bytes.probes;
        self.bytes.values += bytes.values;
        self.bytes.transformations += bytes.transformations;
        self.bytes.memo += bytes.memo;
        self.bytes.twigs += bytes.twigs;
        self.bytes.records += bytes.records;
        self.states += states;
        self.clears += clears;
    }
}
