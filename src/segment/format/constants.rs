//! The constants of equality tests: hash tables (open addressing) that are used in place in a mapped file.

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use crate::ids::{ConditionId, LabelId, SubjectId, TrieNodeId};
use crate::query::functions::normalize_space;
use crate::query::number::number;
use crate::segment::format::NONE;
use crate::segment::format::columns::{Columns, View};
use crate::util::hash::{GOLDEN, folded_multiply};
use crate::util::prefetch::prefetch;

/// Begins the texts of normalised values: no value begins with it.
const NORMALIZED: u8 = 0xFF;

/// A constant while a segment is built: texts and numbers are numbered apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    Text(u32),
    /// Numbered among the texts.
    Normalized(u32),
    Number(u32),
}

#[derive(Default)]
pub struct Constants {
    texts: FxHashMap<Box<[u8]>, u32>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    numbers: FxHashMap<u64, u32>,
    values: Vec<f64>,
}

impl Constants {
    pub fn text(&mut self, text: &str) -> Constant {
        Constant::Text(self.bytes(text.as_bytes()))
    }

    /// A text that values are compared with once their white space is normalised.
    pub fn normalized(&mut self, text: &str) -> Constant {
        Constant::Normalized(self.bytes(&[&[NORMALIZED], text.as_bytes()].concat()))
    }

    fn bytes(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.bytes.extend(text);
        self.ends.push(self.bytes.len() as u32);
        self.texts.insert(text.into(), id);
        id
    }

    pub fn number(&mut self, number: f64) -> Constant {
        // Zero has two bit patterns and is one number.
        let number = if number == 0.0 { 0.0 } else { number };
        let values = &mut self.values;
        Constant::Number(*self.numbers.entry(number.to_bits()).or_insert_with(|| {
            values.push(number);
            values.len() as u32 - 1
        }))
    }

    pub fn count(&self) -> usize {
        self.ends.len() + self.values.len()
    }

    /// How many bytes all texts have.
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A number that puts constants which one value can equal side by side: `5` and `'5'`.
    pub fn order(&self, constant: Constant) -> u64 {
        match constant {
            Constant::Number(id) => self.values[id as usize].to_bits(),
            Constant::Text(id) | Constant::Normalized(id) => {
                let start = if id == 0 { 0 } else { self.ends[id as usize - 1] as usize };
                let value = number(&self.bytes[start..self.ends[id as usize] as usize]);
                if value.is_nan() { u64::MAX - id as u64 } else { value.to_bits() }
            }
        }
    }

    /// The constant's number in the frozen segment.
    pub fn frozen(&self, constant: Constant) -> u32 {
        match constant {
            Constant::Text(id) | Constant::Normalized(id) => id,
            Constant::Number(id) => self.ends.len() as u32 + id,
        }
    }

    pub fn freeze(self, columns: &mut Columns) {
        let digest = blake3::hash(&self.bytes);
        let seed = u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight bytes"));
        columns.hash_seed = vec![seed];
        columns.text_table = table(self.ends.len(), |id| {
            let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
            hash_bytes(seed, &self.bytes[start..self.ends[id] as usize])
        });
        columns.number_table = table(self.values.len(), |id| hash_word(seed, self.values[id].to_bits()));
        columns.text_bytes = self.bytes;
        columns.text_ends = self.ends;
        columns.number = self.values;
    }
}

/// An open-addressing table of ids, at most half full.
fn table(count: usize, hash: impl Fn(usize) -> u64) -> Vec<u32> {
    let mut table = vec![NONE; (count * 2).next_power_of_two()];
    if count == 0 {
        return Vec::new();
    }
    for id in 0..count {
        let mut at = hash(id) as usize & (table.len() - 1);
        while table[at] != NONE {
            at = (at + 1) & (table.len() - 1);
        }
        table[at] = id as u32;
    }
    table
}

/// An entry that a constant is compared with for equality, and the condition that holds then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EqualEntry {
    pub entry: u32,
    pub condition: ConditionId,
}

/// A constant that an entry is compared with for inequality, and the condition that holds if they differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct UnequalTest {
    pub constant: u32,
    pub condition: ConditionId,
}

/// An equality test while it is laid out, in the order it will have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EqualTest {
    /// The label of the node and what is looked at below it.
    pub label: LabelId,
    pub subject: SubjectId,
    pub constant: u32,
    pub entry: u32,
    pub condition: ConditionId,
}

impl EqualTest {
    fn key(&self) -> [u32; 3] {
        [self.label.0, self.subject.0, self.constant]
    }
}

/// Lays out the equality tests: those that one value can pass at elements of a name side by side.
pub fn freeze_equal(seed: u64, tests: &mut [EqualTest], columns: &mut Columns) {
    if tests.is_empty() {
        return;
    }
    tests.sort_unstable();
    let lists = tests.chunk_by(|a, b| a.key() == b.key()).count();
    let mut table = vec![[NONE; 4]; (lists * 2).next_power_of_two()];
    for (number, list) in tests.chunk_by(|a, b| a.key() == b.key()).enumerate() {
        let [label, subject, constant] = list[0].key();
        let mut at = hash_key(seed, list[0].key()) as usize & (table.len() - 1);
        while table[at][3] != NONE {
            at = (at + 1) & (table.len() - 1);
        }
        table[at] = [label, subject, constant, number as u32];
        columns.equal_start.push(columns.equal.len() as u32);
        columns
            .equal
            .extend(list.iter().map(|&EqualTest { entry, condition, .. }| EqualEntry { entry, condition }));
    }
    columns.equal_start.push(columns.equal.len() as u32);
    columns.equal_table = table;
}

/// Lays out the inequality tests, which come sorted by entry: (entry, test).
pub fn freeze_unequal(tests: &[(u32, UnequalTest)], entries: usize, columns: &mut Columns) {
    if tests.is_empty() {
        return;
    }
    let mut starts = vec![0; entries + 1];
    for &(entry, test) in tests {
        starts[entry as usize + 1] += 1;
        columns.unequal.push(test);
    }
    for entry in 0..entries {
        starts[entry + 1] += starts[entry];
    }
    columns.entry_unequal = starts;
}

// A table has free places, so a probe ends at one. In a damaged table it ends once it was everywhere.
impl View<'_> {
    /// The text constant equal to `value`, or `NONE`.
    #[inline]
    pub fn text_constant(&self, value: &[u8]) -> u32 {
        if self.text_table.is_empty() {
            return NONE;
        }
        let mask = self.text_table.len() - 1;
        let first = hash_bytes(self.hash_seed[0], value) as usize;
        for at in (0..=mask).map(|step| first.wrapping_add(step) & mask) {
            let id = self.text_table[at];
            if id == NONE {
                return NONE;
            }
            let start = if id == 0 { 0 } else { self.text_ends[id as usize - 1] as usize };
            if &self.text_bytes[start..self.text_ends[id as usize] as usize] == value {
                return id;
            }
        }
        NONE
    }

    /// The constant equal to `value` once its white space is normalised, or `NONE`.
    #[cold]
    pub fn normalized_constant(&self, value: &[u8]) -> u32 {
        self.text_constant(&[&[NORMALIZED], &*normalize_space(value)].concat())
    }

    /// The number constant equal to `value`, or `NONE`.
    #[inline]
    pub fn number_constant(&self, value: f64) -> u32 {
        if self.number_table.is_empty() || value.is_nan() {
            return NONE;
        }
        let value = if value == 0.0 { 0.0 } else { value };
        let mask = self.number_table.len() - 1;
        let first = hash_word(self.hash_seed[0], value.to_bits()) as usize;
        for at in (0..=mask).map(|step| first.wrapping_add(step) & mask) {
            let id = self.number_table[at];
            if id == NONE {
                return NONE;
            }
            if self.number[id as usize] == value {
                return self.text_ends.len() as u32 + id;
            }
        }
        NONE
    }

    /// The inequality tests of an entry.
    #[inline]
    pub fn unequal(&self, entry: usize) -> &[UnequalTest] {
        match self.entry_unequal {
            [] => &[],
            starts => &self.unequal[starts[entry] as usize..starts[entry + 1] as usize],
        }
    }

    /// The equality tests of a subject with a constant below nodes of a label, by entry.
    #[inline]
    pub fn equal(&self, label: LabelId, subject: SubjectId, constant: u32) -> &[EqualEntry] {
        if self.equal_table.is_empty() {
            return &[];
        }
        let key = [label.0, subject.0, constant];
        let mask = self.equal_table.len() - 1;
        let first = hash_key(self.hash_seed[0], key) as usize;
        for at in (0..=mask).map(|step| first.wrapping_add(step) & mask) {
            let [of_label, of_subject, of_constant, list] = self.equal_table[at];
            if list == NONE {
                return &[];
            }
            if [of_label, of_subject, of_constant] == key {
                let ends = &self.equal_start[list as usize..list as usize + 2];
                return &self.equal[ends[0] as usize..ends[1] as usize];
            }
        }
        &[]
    }

    /// Prefetches these tests.
    #[inline]
    pub fn prefetch_equal(&self, label: LabelId, subject: SubjectId, constant: u32) {
        let at = hash_key(self.hash_seed[0], [label.0, subject.0, constant]) as usize;
        prefetch(self.equal_table, at & self.equal_table.len().wrapping_sub(1));
    }

    /// The condition "the subject of a node's entry equals the constant", or `NONE`.
    #[inline]
    pub fn equal_condition(&self, node: TrieNodeId, entry: u32, constant: u32) -> ConditionId {
        let (label, subject) = (self.node_label[node.index()], self.entry_subject[entry as usize]);
        let tests = self.equal(label, subject, constant);
        let found = tests.binary_search_by_key(&entry, |test| test.entry);
        found.map_or(ConditionId::NONE, |at| tests[at].condition)
    }
}

/// A hash that stays the same from machine to machine: it is part of the file format. The seed
/// depends on the constants themselves, so that collisions cannot be prepared.
#[inline]
pub fn hash_word(seed: u64, word: u64) -> u64 {
    folded_multiply(word ^ seed, GOLDEN ^ seed.rotate_left(32))
}

#[inline]
fn hash_key(seed: u64, [label, subject, constant]: [u32; 3]) -> u64 {
    hash_word(hash_word(seed, (label as u64) << 32 | subject as u64), constant as u64)
}

#[inline]
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = folded_multiply(state ^ word, GOLDEN);
    }
    let mut last = 0;
    for &byte in chunks.remainder() {
        last = last << 8 | byte as u64;
    }
    folded_multiply(state ^ last, GOLDEN ^ seed.rotate_left(32))
}
