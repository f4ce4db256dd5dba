//! The records that values met, as bytes: a bounded cache of one thread.
//!
//! What a value of a join finds is spread over the data: the index, the table of records, their bytes. Here it lies
//! together, so a value that comes again costs a cache line or two beside those of its records.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

/// Bytes that are kept; past them, the cache is emptied before the next message.
const CAPACITY: usize = 16 << 20;
/// Values that meet more bytes of records are not kept.
const MOST: usize = 64 << 10;

#[derive(Default)]
pub struct MetRecords {
    /// By the hash of a join and a value, where the entry begins and ends.
    entries: FxHashMap<u64, (u32, u32)>,
    /// Entries: the join, the value, and for each record its place and its bytes. Texts begin with their lengths.
    bytes: Vec<u8>,
}

/// A record in the cache: its place in the data, and the range of its bytes.
pub type Kept = (u32, (u32, u32));

impl MetRecords {
    /// Before a message: empties the cache if it is full.
    pub fn renew(&mut self) {
        if self.bytes.len() > CAPACITY {
            *self = MetRecords::default();
        }
    }

    /// Calls `visit` with the records that a value meets; false if they are not known.
    pub fn find(&self, join: u32, value: &[u8], mut visit: impl FnMut(Kept)) -> bool {
        let Some(&(start, end)) = self.entries.get(&hash(join, value)) else { return false };
        let (known, mut at) = self.text(start + 4);
        if self.word(start) != join || self.record(known) != value {
            return false;
        }
        while at < end {
            let (record, next) = self.text(at + 4);
            visit((self.word(at), record));
            at = next;
        }
        true
    }

    /// Keeps the records that a value meets, unless they are large.
    pub fn keep<'r>(&mut self, join: u32, value: &[u8], records: impl Iterator<Item = (u32, &'r [u8])>) {
        let start = self.bytes.len();
        self.bytes.extend(join.to_le_bytes());
        self.push(value);
        for (place, record) in records {
            self.bytes.extend(place.to_le_bytes());
            self.push(record);
            if self.bytes.len() - start > MOST {
                return self.bytes.truncate(start);
            }
        }
        self.entries.insert(hash(join, value), (start as u32, self.bytes.len() as u32));
    }

    /// The bytes of a record.
    pub fn record(&self, (start, end): (u32, u32)) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    /// Memory in bytes, approximately.
    pub fn memory(&self) -> usize {
        const ENTRY: usize = 24;
        self.bytes.capacity() + self.entries.len() * ENTRY
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text);
    }

    fn word(&self, at: u32) -> u32 {
        let bytes = &self.bytes[at as usize..at as usize + 4];
        u32::from_le_bytes(bytes.try_into().expect("four bytes"))
    }

    /// The range of a text, and where what follows it begins.
    fn text(&self, at: u32) -> ((u32, u32), u32) {
        let end = at + 4 + self.word(at);
        ((at + 4, end), end)
    }
}

fn hash(join: u32, value: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (join, value).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_join_and_value_until_the_cache_is_full() {
        let mut met = MetRecords::default();
        let found = |met: &MetRecords, join: u32, value: &[u8]| {
            let mut found = Vec::new();
            let is_known =
                met.find(join, value, |(place, range)| found.push((place, met.record(range).to_vec())));
            is_known.then_some(found)
        };
        met.keep(1, b"x", [(7, &b"<a/>"[..]), (9, b"<b/>")].into_iter());
        met.keep(2, b"x", std::iter::empty());
        let large = vec![b'x'; MOST + 1];
        met.keep(3, b"x", [(1, &large[..])].into_iter());
        assert_eq!(found(&met, 1, b"x"), Some(vec![(7, b"<a/>".to_vec()), (9, b"<b/>".to_vec())]));
        assert_eq!(found(&met, 2, b"x"), Some(vec![]));
        assert_eq!(found(&met, 3, b"x"), None);
        assert_eq!(found(&met, 1, b"y"), None);
        for value in 0..CAPACITY / MOST + 2 {
            met.keep(4, &value.to_le_bytes(), [(1, &large[..MOST - 100])].into_iter());
        }
        met.renew();
        assert_eq!((found(&met, 1, b"x"), met.memory()), (None, 0));
    }
}
