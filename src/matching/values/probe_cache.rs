//! What probes said of short values, remembered: streams repeat them far more often than they bring
//! new ones. A cache before the cache: it knows no classes, only the values themselves.

use crate::matching::automaton::masks::MaskList;
use crate::tuning::PROBE_CACHE_BUCKETS;
use crate::util::hash::mix;
use crate::util::prefetch::prefetch;

/// The longest value that fits a word beside its length.
const SHORT: usize = 7;
/// In the place of the length: the value is a rank.
const RANK: u64 = 0xFF << 56;

/// A short value, or a rank, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short(u64);

impl Short {
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Short> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as u64;
        let len = bytes.len();
        let word = match len {
            0 => 0,
            // Some of these are the same byte, in the same place.
            1 => bytes[0] as u64,
            2..=3 => bytes[0] as u64 | (bytes[1] as u64) << 8 | (bytes[len - 1] as u64) << (8 * (len - 1)),
            // Of the second half, what the first has not.
            4..=SHORT => half(0) | half(len - 4) >> (8 * (8 - len)) << 32,
            _ => return None,
        };
        Some(Short(word | (len as u64) << 56))
    }

    pub(crate) fn of_rank(rank: u32) -> Short {
        Short(RANK | rank as u64)
    }

    /// The rank, if it is one.
    pub(crate) fn rank(self) -> Option<u32> {
        (self.0 & RANK == RANK).then_some(self.0 as u32)
    }

    /// The bytes of a value, and how many of them count.
    pub(crate) fn bytes(self) -> ([u8; 8], usize) {
        (self.0.to_le_bytes(), (self.0 >> 56) as usize)
    }
}

/// Slots that share a line of memory: looking at them all takes one wait and no branch.
const WAYS: usize = 4;

/// A table from (probe, value) to answers, in buckets. What finds its bucket full goes to the one
/// beside it, and there in somebody's place: it is a cache.
pub(crate) struct Recent {
    buckets: Vec<Bucket>,
    filled: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

#[derive(Clone, Copy)]
struct Slot {
    value: u64,
    probe: u32,
    answer: MaskList,
}

const FREE: Slot = Slot { value: 0, probe: u32::MAX, answer: MaskList::UNKNOWN };

impl Bucket {
    #[inline(always)]
    fn get(&self, probe: u32, value: Short) -> MaskList {
        self.0.iter().fold(MaskList::UNKNOWN, |answer, slot| {
            if (slot.value == value.0) & (slot.probe == probe) { slot.answer } else { answer }
        })
    }
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { buckets: vec![Bucket([FREE; WAYS]); PROBE_CACHE_BUCKETS], filled: 0 }
    }
}

impl Recent {
    /// Announces that a value will be asked for.
    #[inline]
    pub(crate) fn prefetch(&self, probe: u32, value: Short) {
        prefetch(&self.buckets, self.place(probe, value));
    }

    /// What a probe said of a value, if that is where it belongs; else `UNKNOWN`.
    #[inline]
    pub(crate) fn get(&self, probe: u32, value: Short) -> MaskList {
        self.buckets[self.place(probe, value)].get(probe, value)
    }

    /// The same where that gave nothing: what had to give way.
    pub(crate) fn get_beside(&self, probe: u32, value: Short) -> MaskList {
        self.buckets[self.place(probe, value) ^ 1].get(probe, value)
    }

    /// Remembers what a probe said of a value that is not known, within so many bytes.
    pub(crate) fn put(&mut self, probe: u32, value: Short, answer: MaskList, most: usize) {
        if self.filled * 2 >= self.buckets.len() * WAYS {
            self.grow(most);
        }
        self.add(Slot { value: value.0, probe, answer });
    }

    fn add(&mut self, new: Slot) {
        let place = self.place(new.probe, Short(new.value));
        for place in [place, place ^ 1] {
            if let Some(slot) = self.buckets[place].0.iter_mut().find(|slot| slot.answer == FREE.answer) {
                *slot = new;
                self.filled += 1;
                return;
            }
        }
        self.buckets[place].0[new.value as usize % WAYS] = new;
    }

    /// Makes room: by more buckets, or where these are too many by forgetting.
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
    fn place(&self, probe: u32, value: Short) -> usize {
        (mix(mix(0, probe as u64), value.0) >> 32) as usize & (self.buckets.len() - 1)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.buckets.as_slice())
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Recent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::automaton::masks::{MaskPool, Scratch};

    #[test]
    fn short_values_come_back_as_they_were() {
        let letters = b"abcdefgh";
        for len in 0..=SHORT {
            for at in 0..=len {
                let mut value = letters[..len].to_vec();
                if let Some(byte) = value.get_mut(at) {
                    *byte = 0;
                }
                let (bytes, count) = Short::of(&value).expect("short").bytes();
                assert_eq!(&bytes[..count], value.as_slice());
                assert!(Short::of(&value).expect("short").rank().is_none());
            }
        }
        assert!(Short::of(letters).is_none());
        assert_eq!(Short::of_rank(7).rank(), Some(7));
    }

    #[test]
    fn answers_are_remembered_within_bounds() {
        let (mut bits, mut pool) = (Scratch::new(8), MaskPool::default());
        let mut list = |bit| {
            bits.set(bit);
            pool.store(&mut bits)
        };
        let answers = [list(1), list(2)];
        let mut recent = Recent::default();
        let most = 1 << 14;
        for round in 0..10_000u32 {
            let (probe, value) = (round % 7, Short::of_rank(round));
            assert!(recent.get(probe, value) == MaskList::UNKNOWN);
            recent.put(probe, value, answers[round as usize % 2], most);
            let known = [recent.get(probe, value), recent.get_beside(probe, value)];
            assert!(known.contains(&answers[round as usize % 2]));
            assert!(recent.bytes() <= most);
            // What is still there is right.
            for other in round.saturating_sub(50)..round {
                let known = recent.get(other % 7, Short::of_rank(other));
                assert!(known == MaskList::UNKNOWN || known == answers[other as usize % 2]);
            }
        }
        recent.clear();
        assert!(recent.get(0, Short::of_rank(0)) == MaskList::UNKNOWN);
    }
}
