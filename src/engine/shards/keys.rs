//! Hash of a path and a value → shards: sorted buckets of fingerprints with the shard beside.
//!
//! ```text
//! key (64 bits)   upper half → bucket;  lower half → fingerprint
//! starts[bucket]..starts[bucket + 1]   entries: fingerprint << shard_bits | shard
//! ```
//!
//! A bucket has about eight entries, so a key takes four bytes and a half. A probe that should find nothing finds an
//! entry in a share of 8 / 2^(32 - shard_bits): with 1,024 shards that is 2 of a million, so 210 values of a message lead
//! to one needless visit in 2,000 messages. The table never changes and is mapped.

/// Entries of a bucket on average.
const BUCKET: usize = 8;

/// The table while it is built.
#[derive(Default)]
pub struct KeysBuilder {
    entries: Vec<(u64, u32)>,
}

impl KeysBuilder {
    pub fn add(&mut self, key: u64, shard: u32) {
        self.entries.push((key, shard));
    }

    /// The starts of the buckets and the entries; fingerprints have at most `most_bits`.
    pub fn build(mut self, shard_bits: u32, most_bits: u32) -> (Vec<u32>, Vec<u32>) {
        let buckets = self.entries.len().div_ceil(BUCKET).max(1);
        let form = Form { buckets, shard_bits, fingerprint_bits: most_bits.min(32 - shard_bits) };
        let placed = |&(key, shard): &(u64, u32)| (form.bucket(key), form.fingerprint(key) | shard);
        self.entries.sort_unstable_by_key(placed);
        self.entries.dedup_by_key(|entry| placed(entry));
        let mut starts = vec![0; buckets + 1];
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let (bucket, packed) = placed(entry);
            starts[bucket + 1] += 1;
            entries.push(packed);
        }
        for bucket in 0..buckets {
            starts[bucket + 1] += starts[bucket];
        }
        (starts, entries)
    }
}

/// How keys are cut into buckets and fingerprints.
#[derive(Clone, Copy)]
struct Form {
    buckets: usize,
    shard_bits: u32,
    fingerprint_bits: u32,
}

impl Form {
    #[inline]
    fn bucket(self, key: u64) -> usize {
        (((key >> 32) * self.buckets as u64) >> 32) as usize
    }

    /// In the upper bits of an entry.
    #[inline]
    fn fingerprint(self, key: u64) -> u32 {
        let bits = key as u32 & ((1u64 << self.fingerprint_bits) - 1) as u32;
        ((bits as u64) << self.shard_bits) as u32
    }
}

/// The table as it is read.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    form: Form,
    starts: &'a [u32],
    entries: &'a [u32],
}

impl<'a> Keys<'a> {
    /// None if the table is damaged.
    pub fn new(shard_bits: u32, most_bits: u32, starts: &'a [u32], entries: &'a [u32]) -> Option<Keys<'a>> {
        let ends_well = *starts.last()? as usize == entries.len() && shard_bits < 32 && most_bits > 0;
        let form =
            Form { buckets: starts.len() - 1, shard_bits, fingerprint_bits: most_bits.min(32 - shard_bits) };
        (ends_well && form.buckets > 0).then_some(Keys { form, starts, entries })
    }

    /// Calls `found` with each shard that may have the key.
    #[inline]
    pub fn find(self, key: u64, mut found: impl FnMut(u32)) {
        let bucket = self.form.bucket(key);
        let fingerprint = self.form.fingerprint(key);
        let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        for &entry in &self.entries[range] {
            if (entry ^ fingerprint) >> self.form.shard_bits == 0 {
                found(entry & ((1 << self.form.shard_bits) - 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::hash::folded_multiply;

    fn key(number: u64) -> u64 {
        folded_multiply(number + 1, 0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn every_key_is_found_and_few_others_are() {
        for (shard_bits, most_bits) in [(10, 32), (3, 1), (0, 32)] {
            let mut builder = KeysBuilder::default();
            let shard = |number: u64| (number % (1 << shard_bits)) as u32;
            (0..20_000).for_each(|number| builder.add(key(number), shard(number)));
            let (starts, entries) = builder.build(shard_bits, most_bits);
            assert!(4 * (starts.len() + entries.len()) <= 5 * 20_000);
            let keys = Keys::new(shard_bits, most_bits, &starts, &entries).expect("whole");
            let mut wrong = 0;
            for number in 0..20_000 {
                let mut found = Vec::new();
                keys.find(key(number), |shard| found.push(shard));
                assert!(found.contains(&shard(number)));
                keys.find(key(number + 1_000_000), |_| wrong += 1);
            }
            assert!(most_bits == 1 || wrong < 20, "{wrong}");
        }
    }
}
