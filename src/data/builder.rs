//! Records → a frozen segment. Each record is read once, for its values; its bytes are kept as they came.
//!
//! The paths of all elements and attributes are indexed, or those that are named. Text nodes have entries of their own
//! only where they are not the whole value of their element. The long values of elements with child elements are not
//! indexed, because each byte of a record would count as often as it is deep.

use rustc_hash::FxHashMap;

use super::change::shown;
use super::leaf::{LeafPath, ValuePath};
use super::segment::{DataSegment, Key, Missing, SECTIONS, Section, bucket, flags, hash, record_of};
use crate::document::{Capacity, Document, Reader, Vocabulary};
use crate::error::{DataError, ReadError};
use crate::ids::{ElementId, NameId, TagPathId, UriId};
use crate::limits::Limits;
use crate::query::number::number;

/// Elements with child elements are indexed if their values have at most so many bytes.
pub const INNER_VALUE_BYTES: usize = 1 << 10;
/// Entries of the index per bucket, at most.
const BUCKET: usize = 8;

/// What of the records is indexed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The path of the record key.
    pub key: Option<ValuePath>,
    /// The paths whose values are indexed; all, if none are named.
    pub indexed: Option<Vec<ValuePath>>,
}

pub struct DataBuilder {
    limits: Limits,
    selection: Selection,
    reader: Reader,
    document: Document,
    leaves: FxHashMap<LeafPath, u32>,
    facts: Vec<Leaf>,
    entries: Vec<(u64, u32)>,
    places: Vec<u32>,
    ends: Vec<u64>,
    records: Vec<u8>,
    /// The keys of the record that was read last.
    keys: Vec<Vec<u8>>,
    /// The keys of all records that were appended, with their numbers.
    known: FxHashMap<Box<[u8]>, u32>,
}

struct Leaf {
    path: LeafPath,
    is_key: bool,
    missing: Missing,
}

impl DataBuilder {
    pub fn new(selection: Selection, limits: Limits) -> DataBuilder {
        // The ids of a name and of a path must be the same in all records.
        let capacity = Capacity { names: usize::MAX, tag_paths: usize::MAX, bytes: usize::MAX };
        DataBuilder {
            limits,
            selection,
            reader: Reader::with_vocabulary(Vocabulary::with_capacity(capacity)),
            document: Document::default(),
            leaves: FxHashMap::default(),
            facts: Vec::new(),
            entries: Vec::new(),
            places: Vec::new(),
            ends: Vec::new(),
            records: Vec::new(),
            keys: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Reads a record, whose place is behind those before.
    pub fn add(&mut self, place: u32, record: &[u8]) -> Result<(), ReadError> {
        self.reader.read(record, &self.limits, &mut self.document)?;
        self.keys.clear();
        let number = self.places.len() as u32;
        for at in 0..self.document.elements.len() {
            self.index_element(ElementId::from(at), number);
        }
        self.push(place, record);
        Ok(())
    }

    /// Reads a record that follows those before, and whose key none of them has.
    pub fn add_last(&mut self, record: &[u8]) -> Result<(), DataError> {
        let number = self.places.len();
        self.add(number as u32, record).map_err(|error| DataError::of_record(number, &error))?;
        if self.selection.key.is_none() {
            return Ok(());
        }
        let key = self.key().map_err(|error| error.at_record(number))?;
        if let Some(&other) = self.known.get(key) {
            let reason = format!("records {} and {} have the key {}", other + 1, number + 1, shown(key));
            return Err(DataError::new("duplicate-key", reason));
        }
        let key = self.keys.pop().unwrap_or_default();
        self.known.insert(key.into(), number as u32);
        Ok(())
    }

    /// Adds a tombstone.
    pub fn add_removed(&mut self, place: u32) {
        self.push(place, b"");
    }

    fn push(&mut self, place: u32, record: &[u8]) {
        self.records.extend_from_slice(record);
        self.ends.push(self.records.len() as u64);
        self.places.push(place);
    }

    /// The bytes of a record by its number.
    pub fn record(&self, number: u32) -> &[u8] {
        record_of(&self.records, &self.ends, number as usize)
    }

    /// The only key of the record that was read last.
    pub fn key(&self) -> Result<&[u8], DataError> {
        match self.keys.as_slice() {
            [key] => Ok(key),
            keys => {
                let path = self.selection.key.as_ref().map_or("", ValuePath::text);
                Err(DataError::new(
                    "missing-key",
                    format!("has {} values of its key {path}, not one", keys.len()),
                ))
            }
        }
    }

    fn index_element(&mut self, element: ElementId, record: u32) {
        let DataBuilder { document, entries, keys, .. } = self;
        let (place, tag_path) = (element.index(), document.element(element).tag_path);
        let leaf = leaf(
            LeafPath { elements: tag_path, attribute: NameId::NONE },
            &mut self.leaves,
            &mut self.facts,
            &self.selection,
            self.reader.vocabulary(),
        );
        let facts = &mut self.facts[leaf as usize];
        let (value, texts) = (document.string_value(element), document.element(element).texts);
        let is_inner = document.element(element).end.index() > place + 1;
        if facts.is_key {
            keys.push(value.to_vec());
        }
        if facts.missing < Missing::All {
            if is_inner && value.len() > INNER_VALUE_BYTES && !facts.is_key {
                facts.missing = Missing::Long;
            } else {
                push(leaf, value, record, entries);
            }
            if is_inner || texts.len() > 1 {
                let values = document.texts_of(element).map(|text| text.content.of(&document.text));
                values.for_each(|value| push(leaf, value, record, entries));
            }
        }
        for attribute in document.attributes_of(element) {
            let leaf = self::leaf(
                LeafPath { elements: tag_path, attribute: attribute.name },
                &mut self.leaves,
                &mut self.facts,
                &self.selection,
                self.reader.vocabulary(),
            );
            let facts = &self.facts[leaf as usize];
            if facts.is_key {
                keys.push(document.value(attribute).to_vec());
            }
            if facts.missing < Missing::All {
                push(leaf, document.value(attribute), record, entries);
            }
        }
    }

    /// The segment, in memory.
    pub fn freeze(mut self) -> DataSegment {
        self.entries.sort_unstable();
        self.entries.dedup();
        let count = (self.entries.len() / BUCKET).next_power_of_two();
        let mut buckets = vec![0; count + 1];
        self.entries.iter().for_each(|&(hash, _)| buckets[bucket(hash, count) + 1] += 1);
        for at in 0..count {
            buckets[at + 1] += buckets[at];
        }
        let (hashes, found): (Vec<u64>, Vec<u32>) = self.entries.into_iter().unzip();
        let vocabulary = self.reader.vocabulary();
        let (mut bytes, mut uri_ends, mut names, mut paths) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for uri in 0..vocabulary.stats().uris {
            bytes.extend_from_slice(vocabulary.uri_text(UriId::from(uri)));
            uri_ends.push(bytes.len() as u32);
        }
        for name in 0..vocabulary.names() {
            let (uri, local) = vocabulary.name_parts(NameId::from(name));
            bytes.extend_from_slice(local);
            names.push([uri.0, bytes.len() as u32]);
        }
        for path in 0..vocabulary.tag_paths() {
            let (above, name) = vocabulary.tag_path_parts(TagPathId::from(path));
            paths.push([above.0, name.0]);
        }
        let leaves: Vec<[u32; 3]> = (self.facts.iter())
            .map(|leaf| [leaf.path.elements.0, leaf.path.attribute.0, leaf.missing as u32])
            .collect();
        let facts = [flags(&self.limits)];
        let mut sections: [&[u8]; SECTIONS] = [&[]; SECTIONS];
        sections[Section::Places as usize] = bytemuck::cast_slice(&self.places);
        sections[Section::Ends as usize] = bytemuck::cast_slice(&self.ends);
        sections[Section::Records as usize] = &self.records;
        sections[Section::Facts as usize] = bytemuck::cast_slice(&facts);
        sections[Section::NameBytes as usize] = &bytes;
        sections[Section::UriEnds as usize] = bytemuck::cast_slice(&uri_ends);
        sections[Section::Names as usize] = bytemuck::cast_slice(&names);
        sections[Section::TagPaths as usize] = bytemuck::cast_slice(&paths);
        sections[Section::Leaves as usize] = bytemuck::cast_slice(&leaves);
        sections[Section::Buckets as usize] = bytemuck::cast_slice(&buckets);
        sections[Section::Hashes as usize] = bytemuck::cast_slice(&hashes);
        sections[Section::Found as usize] = bytemuck::cast_slice(&found);
        DataSegment::new(sections)
    }
}

/// The number of a leaf path.
fn leaf(
    path: LeafPath,
    leaves: &mut FxHashMap<LeafPath, u32>,
    facts: &mut Vec<Leaf>,
    selection: &Selection,
    vocabulary: &Vocabulary,
) -> u32 {
    *leaves.entry(path).or_insert_with(|| {
        let is = |wanted: &ValuePath| wanted.is(path, vocabulary);
        let is_key = selection.key.as_ref().is_some_and(is);
        let is_indexed = is_key || selection.indexed.as_ref().is_none_or(|indexed| indexed.iter().any(is));
        let missing = if is_indexed { Missing::Nothing } else { Missing::All };
        facts.push(Leaf { path, is_key, missing });
        facts.len() as u32 - 1
    })
}

fn push(leaf: u32, value: &[u8], record: u32, entries: &mut Vec<(u64, u32)>) {
    let keys = [Key::Text(value), Key::Number(number(value))];
    entries.extend(keys.into_iter().filter_map(|key| Some((hash(leaf, key)?, record))));
}
