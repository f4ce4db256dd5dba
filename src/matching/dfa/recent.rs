//! What probes said of short values, remembered: streams repeat them far more often than they bring
//! new ones. A cache before the cache: it knows no classes, only the values themselves.

use crate::matching::bits::MaskList;

/// The longest value that fits a word beside its length.
const SHORT: usize = 7;
/// In the place of the length: the value is a rank.
const RANK: u64 = 0xFF << 56;

/// A short value, or a rank, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Short(u64);

impl Short {
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Option<Short> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as u64;
        let len = bytes.len();
        let word = match len {
            0 => 0,
            // Some of these are the same byte, in the same place.
            1 => bytes[0] as u64,
            2..=3 => {
                bytes[0] as u64 | (bytes[1] as u64) << 8 | (bytes[len - 1] as u64) << (8 * (len - 1))
            }
            // Of the second half, what the first has not.
            4..=SHORT => half(0) | half(len - 4) >> (8 * (8 - len)) << 32,
            _ => return None,
        };
        Some(Short(word | (len as u64) << 56))
    }

    pub(super) fn of_rank(rank: u32) -> Short {
        Short(RANK | rank as u64)
    }

    /// The rank, if it is one.
    pub(super) fn rank(self) -> Option<u32> {
        (self.0 & RANK == RANK).then_some(self.0 as u32)
    }

    /// The bytes of a value, and how many of them count.
    pub(super) fn bytes(self) -> ([u8; 8], usize) {
        (self.0.to_le_bytes(), (self.0 >> 56) as usize)
    }
}

/// Slots that are looked at for a value, at most: it bounds the time whatever the values are.
const REACH: usize = 8;
const FEWEST_SLOTS: usize = 64;

/// An open-addressing table from (probe, value) to answers.
pub(super) struct Recent {
    slots: Vec<Slot>,
    filled: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    value: u64,
    probe: u32,
    answer: MaskList,
}

const FREE: Slot = Slot { value: 0, probe: u32::MAX, answer: MaskList::UNKNOWN };

impl Default for Recent {
    fn default() -> Recent {
        Recent { slots: vec![FREE; FEWEST_SLOTS], filled: 0 }
    }
}

impl Recent {
    /// What a probe said of a value, or `UNKNOWN`.
    #[inline]
    pub(super) fn get(&self, probe: u32, value: Short) -> MaskList {
        let first = self.first(probe, value.0);
        for at in first..first + REACH {
            let slot = self.slots[at & (self.slots.len() - 1)];
            if (slot.value == value.0) & (slot.probe == probe) | (slot.answer == MaskList::UNKNOWN) {
                return slot.answer;
            }
        }
        MaskList::UNKNOWN
    }

    /// Remembers what a probe said, within so many bytes.
    pub(super) fn put(&mut self, probe: u32, value: Short, answer: MaskList, most: usize) {
        if self.filled * 2 >= self.slots.len() {
            self.grow(most);
        }
        self.place(Slot { value: value.0, probe, answer });
    }

    fn place(&mut self, new: Slot) {
        let (first, mask) = (self.first(new.probe, new.value), self.slots.len() - 1);
        let usable = |slot: &Slot| {
            slot.answer == MaskList::UNKNOWN || (slot.value == new.value && slot.probe == new.probe)
        };
        // Where all are taken the first is given up.
        let at = (first..first + REACH).find(|at| usable(&self.slots[at & mask])).unwrap_or(first) & mask;
        self.filled += (self.slots[at].answer == MaskList::UNKNOWN) as usize;
        self.slots[at] = new;
    }

    /// Makes room: by more slots, or where these are too many by forgetting.
    #[cold]
    fn grow(&mut self, most: usize) {
        let slots = self.slots.len() * 2;
        if slots * size_of::<Slot>() > most {
            self.slots.fill(FREE);
            self.filled = 0;
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        self.filled = 0;
        old.into_iter().filter(|slot| slot.answer != MaskList::UNKNOWN).for_each(|slot| self.place(slot));
    }

    #[inline(always)]
    fn first(&self, probe: u32, value: u64) -> usize {
        let mixed = (value ^ (probe as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Recent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (mut bits, mut pool) = (crate::matching::bits::Bits::new(8), Default::default());
        let mut list = |bit| {
            bits.set(bit);
            crate::matching::bits::MaskPool::store(&mut pool, &mut bits, 0)
        };
        let answers = [list(1), list(2)];
        let mut recent = Recent::default();
        let most = 1 << 14;
        for round in 0..10_000u32 {
            let (probe, value) = (round % 7, Short::of_rank(round));
            assert!(recent.get(probe, value) == MaskList::UNKNOWN);
            recent.put(probe, value, answers[round as usize % 2], most);
            assert!(recent.get(probe, value) == answers[round as usize % 2]);
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
