//! Outputs of a message that are there already: told by what is constructed, and of what.

use crate::ids::ElementId;
use crate::tuning::DEDUPLICATION_WORDS;

const NONE: u32 = u32::MAX;

/// A table by hash; entries in one place are linked.
#[derive(Default)]
pub struct Deduplicator {
    table: Vec<u32>,
    entries: Vec<Entry>,
    /// The words that tell outputs from each other. After those of all entries stand those of the output that
    /// is asked for.
    words: Vec<u32>,
    /// The place in the table of the output that is asked for.
    place: usize,
}

struct Entry {
    start: usize,
    end: usize,
    output: u32,
    next: u32,
}

impl Deduplicator {
    /// Goes over to a message of which so many outputs may be made.
    pub fn reset(&mut self, outputs: usize) {
        self.words.clear();
        self.words.shrink_to(DEDUPLICATION_WORDS);
        self.entries.clear();
        self.table.clear();
        self.table.resize((outputs * 2).next_power_of_two(), NONE);
    }

    /// Begins to ask for an output, by what is constructed.
    pub fn ask(&mut self, construction: u32) {
        self.words.truncate(self.asked());
        self.words.push(construction);
    }

    /// Goes on with the elements that a block binds.
    pub fn ask_of(&mut self, bound: &[ElementId]) {
        self.words.push(bound.len() as u32);
        self.words.extend_from_slice(bytemuck::cast_slice(bound));
    }

    /// The number of the output asked for, if it is there.
    pub fn find(&mut self) -> Option<u32> {
        let words = &self.words[self.asked()..];
        let hash = words.iter().fold(0u64, |hash, &word| {
            (hash.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        self.place = (hash >> 32) as usize & (self.table.len() - 1);
        let mut at = self.table[self.place];
        while let Some(entry) = self.entries.get(at as usize) {
            if self.words[entry.start..entry.end] == *words {
                return Some(entry.output);
            }
            at = entry.next;
        }
        None
    }

    /// Notes that the output asked for is there now, if there is room.
    pub fn insert(&mut self, output: u32) {
        let (start, end) = (self.asked(), self.words.len());
        if end > DEDUPLICATION_WORDS {
            return;
        }
        let next = std::mem::replace(&mut self.table[self.place], self.entries.len() as u32);
        self.entries.push(Entry { start, end, output, next });
    }

    /// Where the words begin of the output that is asked for.
    fn asked(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.end)
    }
}
