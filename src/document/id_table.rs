//! A hash table of ids: the keys stay where they are, the table knows only hashes and ids.
//!
//! Messages choose the keys, so the hash is seeded: nobody can prepare names that collide. Ids are
//! given out in order of first use and do not depend on the seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The secret of one set of tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64, u64);

impl Seed {
    pub fn new() -> Seed {
        let state = RandomState::new();
        let draw = |n: u8| {
            let mut hasher = state.build_hasher();
            hasher.write_u8(n);
            hasher.finish()
        };
        Seed(draw(0), draw(1) | 1)
    }

    /// Takes two more words into a hash: both halves of a 128-bit product, folded.
    #[inline(always)]
    pub fn mix(self, state: u64, [a, b]: [u64; 2]) -> u64 {
        let product = u128::from(state ^ a ^ self.0) * u128::from(b ^ self.1);
        product as u64 ^ (product >> 64) as u64
    }

    #[inline(always)]
    pub fn pair(self, a: u32, b: u32) -> u64 {
        self.mix(0, [u64::from(a) << 32 | u64::from(b), 0])
    }

    pub fn bytes(self, salt: u32, bytes: &[u8]) -> u64 {
        let start = self.mix(0, [u64::from(salt), bytes.len() as u64]);
        bytes.chunks(16).fold(start, |state, chunk| {
            let mut words = [0; 16];
            words[..chunk.len()].copy_from_slice(chunk);
            let words = u128::from_le_bytes(words);
            self.mix(state, [words as u64, (words >> 64) as u64])
        })
    }
}

#[derive(Clone, Copy)]
struct Slot {
    /// The upper half of the hash: tells nearly all strangers apart without a look at their keys.
    tag: u32,
    id: u32,
}

const EMPTY: Slot = Slot { tag: 0, id: u32::MAX };

/// Open addressing with linear probing, at most a quarter full: nearly every key is found at its first place.
pub(super) struct IdTable {
    slots: Vec<Slot>,
    len: usize,
}

impl IdTable {
    pub fn new() -> IdTable {
        IdTable { slots: vec![EMPTY; 64], len: 0 }
    }

    /// The id filed under `hash` for which `is_match` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_match: impl Fn(u32) -> bool) -> Option<u32> {
        let slots = &self.slots[..];
        let mask = slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at & mask];
            if slot.tag == tag && slot.id != EMPTY.id && is_match(slot.id) {
                return Some(slot.id);
            }
            if slot.id == EMPTY.id {
                return None;
            }
            at += 1;
        }
    }

    /// Files a new id; `hash_of` gives the hash of ids already filed, for when the table grows.
    pub fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 4 > self.slots.len() {
            let larger = vec![EMPTY; self.slots.len() * 2];
            for slot in std::mem::replace(&mut self.slots, larger) {
                if slot.id != EMPTY.id {
                    self.place(hash_of(slot.id), slot.id);
                }
            }
        }
        self.place(hash, id);
        self.len += 1;
    }

    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    fn place(&mut self, hash: u64, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].id != EMPTY.id {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot { tag: (hash >> 32) as u32, id };
    }
}
