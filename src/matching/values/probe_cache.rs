//! The answers of probes to short values: a 4-way set-associative cache.
//!
//! Streams repeat values far more often than they have new ones, and finding the class of a value takes several
//! lookups. This cache has the answer by probe and value, in one cache line. A bucket has four slots. If they are
//! taken, a new answer goes to the neighbouring bucket, and if that is full too, it replaces one in its own. The
//! table grows when it is half full, up to a bound; then it is emptied.

use super::short::ShortValue;
use crate::matching::automaton::masks::MaskList;
use crate::tuning::PROBE_CACHE_BUCKETS;
use crate::util::hash::mix;
use crate::util::prefetch::prefetch;

/// Slots of a bucket: as many as fit a cache line. All are compared, without a branch.
const WAYS: usize = 4;

/// Answers by probe and value.
pub(crate) struct ProbeCache {
    buckets: Vec<Bucket>,
    filled: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

#[derive(Clone, Copy)]
struct Slot {
    value: ShortValue,
    probe: u32,
    answer: MaskList,
}

const FREE: Slot = Slot { value: ShortValue::EMPTY, probe: u32::MAX, answer: MaskList::UNKNOWN };

impl Bucket {
    #[inline(always)]
    fn get(&self, probe: u32, value: ShortValue) -> MaskList {
        self.0.iter().fold(MaskList::UNKNOWN, |answer, slot| {
            if (slot.value == value) & (slot.probe == probe) { slot.answer } else { answer }
        })
    }
}

impl Default for ProbeCache {
    fn default() -> ProbeCache {
        ProbeCache { buckets: vec![Bucket([FREE; WAYS]); PROBE_CACHE_BUCKETS], filled: 0 }
    }
}

impl ProbeCache {
    /// Prefetches the bucket of a value.
    #[inline]
    pub(crate) fn prefetch(&self, probe: u32, value: ShortValue) {
        prefetch(&self.buckets, self.place(probe, value));
    }

    /// The answer of a probe to a value, if its bucket has it; otherwise `UNKNOWN`.
    #[inline]
    pub(crate) fn get(&self, probe: u32, value: ShortValue) -> MaskList {
        self.buckets[self.place(probe, value)].get(probe, value)
    }

    /// The same from the neighbouring bucket, which has what did not fit.
    pub(crate) fn get_overflowed(&self, probe: u32, value: ShortValue) -> MaskList {
        self.buckets[self.place(probe, value) ^ 1].get(probe, value)
    }

    /// Inserts the answer to a value that has none, within `most` bytes.
    pub(crate) fn put(&mut self, probe: u32, value: ShortValue, answer: MaskList, most: usize) {
        if self.filled * 2 >= self.buckets.len() * WAYS {
            self.grow(most);
        }
        self.add(Slot { value, probe, answer });
    }

    fn add(&mut self, new: Slot) {
        let place = self.place(new.probe, new.value);
        for place in [place, place ^ 1] {
            if let Some(slot) = self.buckets[place].0.iter_mut().find(|slot| slot.answer == FREE.answer) {
                *slot = new;
                self.filled += 1;
                return;
            }
        }
        self.buckets[place].0[new.value.word() as usize % WAYS] = new;
    }

    /// Doubles the buckets, or drops everything if they would exceed `most` bytes.
    #[cold]
    fn grow(&mut self, most: usize) {
        let count = self.buckets.len() * 2;
        self.filled = 0;
        if count * size_of::<Bucket>() > most {
            self.buckets.fill(Bucket([FREE; WAYS]));
            return;
        }
        let old = std::mem::replace(&mut self.buckets, vec![Bucket([FREE; WAYS]); count]);
        let slots = old.into_iter().flat_map(|bucket| bucket.0);
        slots.filter(|slot| slot.answer != FREE.answer).for_each(|slot| self.add(slot));
    }

    #[inline(always)]
    fn place(&self, probe: u32, value: ShortValue) -> usize {
        (mix(mix(0, probe as u64), value.word()) >> 32) as usize & (self.buckets.len() - 1)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.buckets.as_slice())
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = ProbeCache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::automaton::masks::{MaskPool, MaskScratch};

    #[test]
    fn answers_are_kept_within_bounds() {
        let (mut bits, mut pool) = (MaskScratch::new(8), MaskPool::default());
        let mut list = |bit| {
            bits.set(bit);
            pool.store(&mut bits)
        };
        let answers = [list(1), list(2)];
        let mut cache = ProbeCache::default();
        let most = 1 << 14;
        for round in 0..10_000u32 {
            let (probe, value) = (round % 7, ShortValue::of_rank(round));
            assert!(cache.get(probe, value) == MaskList::UNKNOWN);
            cache.put(probe, value, answers[round as usize % 2], most);
            let known = [cache.get(probe, value), cache.get_overflowed(probe, value)];
            assert!(known.contains(&answers[round as usize % 2]));
            assert!(cache.bytes() <= most);
            // Entries that were not evicted are right.
            for other in round.saturating_sub(50)..round {
                let known = cache.get(other % 7, ShortValue::of_rank(other));
                assert!(known == MaskList::UNKNOWN || known == answers[other as usize % 2]);
            }
        }
        cache.clear();
        assert!(cache.get(0, ShortValue::of_rank(0)) == MaskList::UNKNOWN);
    }
}
