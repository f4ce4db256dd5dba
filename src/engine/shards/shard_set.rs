//! A set of shards, a bit for each.

use crate::util::bitset::{set_bit, set_bits};

#[derive(Clone, Default, PartialEq, Debug)]
pub struct ShardSet(Vec<u64>);

impl ShardSet {
    /// Room for shards `0..count`.
    pub fn new(count: usize) -> ShardSet {
        ShardSet(vec![0; count.div_ceil(64)])
    }

    pub fn of_words(words: Vec<u64>) -> ShardSet {
        ShardSet(words)
    }

    pub fn words(&self) -> &[u64] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    pub fn insert(&mut self, shard: u32) {
        set_bit(&mut self.0, shard as usize);
    }

    pub fn contains(&self, shard: u32) -> bool {
        self.0.get(shard as usize / 64).is_some_and(|word| word >> (shard % 64) & 1 != 0)
    }

    /// Adds the shards of another set of the same generation.
    pub fn add(&mut self, other: &ShardSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// Whether it has all shards of another set.
    pub fn includes(&self, other: &ShardSet) -> bool {
        self.0.iter().zip(&other.0).all(|(word, other)| other & !word == 0)
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        set_bits(&self.0)
    }
}
