//! De-duplicates the outputs of one message. Two transformations with the same output program that bind the same
//! elements have equal outputs: the second gets the number of the first, and is neither evaluated further nor written.
//!
//! The key of an output is its program and, for each block, the number of bound elements and the elements. Keys lie
//! one after the other in one buffer, and a chained hash table finds them.

use crate::ids::ElementId;
use crate::tuning::DEDUPLICATION_WORDS;
use crate::util::hash::mix;

const NONE: u32 = u32::MAX;

#[derive(Default)]
pub struct Deduplicator {
    /// The first entry of each bucket.
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    /// The keys of all entries, then the current key.
    keys: Vec<u32>,
    /// The bucket of the current key.
    bucket: usize,
}

struct Entry {
    /// Its range of `keys`.
    start: usize,
    end: usize,
    output: u32,
    /// The next entry of the same bucket.
    next: u32,
}

impl Deduplicator {
    /// Starts a message of this many outputs.
    pub fn reset(&mut self, outputs: usize) {
        self.keys.clear();
        self.keys.shrink_to(DEDUPLICATION_WORDS);
        self.entries.clear();
        self.buckets.clear();
        self.buckets.resize((outputs * 2).next_power_of_two(), NONE);
    }

    /// Starts the key of an output.
    pub fn begin_key(&mut self, construction: u32) {
        self.keys.truncate(self.key_start());
        self.keys.push(construction);
    }

    /// Adds the elements that a block binds to the key.
    pub fn extend_key(&mut self, bound: &[ElementId]) {
        self.keys.push(bound.len() as u32);
        self.keys.extend_from_slice(bytemuck::cast_slice(bound));
    }

    /// The output with the current key, if there is one.
    pub fn find(&mut self) -> Option<u32> {
        let key = &self.keys[self.key_start()..];
        let hash = key.iter().fold(0, |hash, &word| mix(hash, u64::from(word)));
        self.bucket = (hash >> 32) as usize & (self.buckets.len() - 1);
        let mut at = self.buckets[self.bucket];
        while let Some(entry) = self.entries.get(at as usize) {
            if self.keys[entry.start..entry.end] == *key {
                return Some(entry.output);
            }
            at = entry.next;
        }
        None
    }

    /// Adds an output with the current key, which `find` did not find, if there is room.
    pub fn insert(&mut self, output: u32) {
        let (start, end) = (self.key_start(), self.keys.len());
        if end > DEDUPLICATION_WORDS {
            return;
        }
        let next = std::mem::replace(&mut self.buckets[self.bucket], self.entries.len() as u32);
        self.entries.push(Entry { start, end, output, next });
    }

    /// Memory of its buffers.
    pub fn bytes(&self) -> usize {
        (self.keys.capacity() + self.buckets.capacity()) * size_of::<u32>()
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// Where the current key starts.
    fn key_start(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.end)
    }
}
