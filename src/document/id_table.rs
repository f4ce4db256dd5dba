//! A hash table from keys to ids that stores only hashes and ids; the caller stores the keys and
//! compares them. A lookup costs one hash and, nearly always, one probe.
//!
//! The sender of a message chooses the keys, so the hash is seeded at random: a sender cannot prepare names
//! that collide. The table never decides an id: ids come from the caller and do not depend on the seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The random seed of one set of tables.
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

    /// Mixes two more words into a hash: the two halves of a 128-bit product, XORed (as wyhash does).
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
    /// The upper half of the hash. If it differs, the keys differ, and they need not be compared.
    tag: u32,
    id: u32,
}

const EMPTY: Slot = Slot { tag: 0, id: u32::MAX };

/// Open addressing with linear probing. At most a quarter of the slots are full, so nearly every key is
/// in its first slot.
#[derive(Clone)]
pub(super) struct IdTable {
    slots: Vec<Slot>,
    len: usize,
}

impl IdTable {
    pub fn new() -> IdTable {
        IdTable { slots: vec![EMPTY; 64], len: 0 }
    }

    /// The id stored under `hash` for which `is_match` holds.
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

    /// Stores a new id. `hash_of` gives the hash of an id stored before; it is needed when the table grows.
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
