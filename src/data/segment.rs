//! A frozen segment of records: flat arrays in memory or in a mapped file, named by the hash of its content.
//!
//! Records lie there as they came, and are read when a message meets them. Beside them is an index from (leaf path,
//! value) to records: the hashes of the path with the value, as text or as number, sorted, each with its record. A
//! table by the upper bits of the hashes leads to the few that are compared, so finding the records of a value
//! touches three cache lines. Records that are found by a collision of hashes do no harm: who asks evaluates the
//! condition on what was found.
//!
//! Each record has a **place** in its data set. A record of a newer segment replaces that of the same place in older
//! ones; an empty record is a tombstone.

use std::path::Path;

use super::leaf::LeafPath;
use crate::document::Vocabulary;
use crate::error::DataError;
use crate::ids::{NameId, TagPathId, UriId};
use crate::limits::Limits;
use crate::util::hash::{GOLDEN, folded_multiply, mix};
use crate::util::storage::{Storage, content_name};

const MAGIC: [u8; 8] = *b"tamisdat";
/// The version of the format; increment it when the meaning of a section changes. The header, and the sections of
/// places and records, are the same in all versions: other versions are rebuilt from them.
const FORMAT: u32 = 1;
const ALIGNMENT: usize = 64;

/// The sections of a file, in their order.
#[derive(Clone, Copy)]
pub(super) enum Section {
    /// Per record, its place, ascending (u32).
    Places,
    /// Per record, one past its last byte (u64).
    Ends,
    Records,
    /// How records are read: flags (u32).
    Facts,
    /// URIs, then local names.
    NameBytes,
    /// One past the last byte of each URI (u32).
    UriEnds,
    /// Pairs of a URI and one past the last byte of the local name (u32).
    Names,
    /// Pairs of the path above and a name (u32).
    TagPaths,
    /// Triples of tag path, attribute, and which values are missing in the index (u32).
    Leaves,
    /// Where the hashes of each bucket begin (u32): as many buckets as a power of 2, by their upper bits.
    Buckets,
    /// Sorted (u64).
    Hashes,
    /// Per hash, the number of its record in the segment (u32).
    Found,
}

pub(super) const SECTIONS: usize = Section::Found as usize + 1;
const HEADER: usize = 16 + SECTIONS * 16;

const KNOWN_UTF8: u32 = 1;
const INTERNAL_SUBSET: u32 = 2;
const SKIP_UNREAD_ENTITIES: u32 = 4;

/// Which values of a leaf path are not in the index.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Missing {
    #[default]
    Nothing,
    /// Long values of elements with child elements.
    Long,
    All,
}

/// A value to look for.
#[derive(Clone, Copy)]
pub enum Key<'k> {
    Text(&'k [u8]),
    Number(f64),
}

pub struct DataSegment {
    storage: Storage,
    sections: [(usize, usize); SECTIONS],
    name: String,
}

impl DataSegment {
    /// A segment in memory.
    pub(super) fn new(sections: [&[u8]; SECTIONS]) -> DataSegment {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend((SECTIONS as u32).to_le_bytes());
        let mut at = HEADER;
        let mut places = [(0, 0); SECTIONS];
        for (place, section) in places.iter_mut().zip(&sections) {
            at = at.next_multiple_of(ALIGNMENT);
            *place = (at, at + section.len());
            bytes.extend((at as u64).to_le_bytes());
            bytes.extend((section.len() as u64).to_le_bytes());
            at += section.len();
        }
        let mut words = vec![0u64; at.div_ceil(8)];
        let whole: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        whole[..bytes.len()].copy_from_slice(&bytes);
        for (place, section) in places.iter().zip(&sections) {
            whole[place.0..place.1].copy_from_slice(section);
        }
        DataSegment { storage: Storage::Memory(words), sections: places, name: String::new() }
    }

    /// Maps a segment and verifies its content by its name.
    pub fn open(path: &Path) -> Result<DataSegment, DataError> {
        let segment = DataSegment::open_unverified(path)?;
        segment.verify().map(|()| segment)
    }

    /// Maps a segment, of which little will be read.
    pub fn open_unverified(path: &Path) -> Result<DataSegment, DataError> {
        let (storage, format, sections) = map(path)?;
        let found = format == FORMAT && sections.len() == SECTIONS;
        let sections = sections.try_into().ok().filter(|_| found).ok_or_else(|| {
            let reason = format!(
                "{} is of format {format}, this version of tamis reads {FORMAT}: rebuild the data set",
                path.display()
            );
            DataError::new("data-format", reason)
        })?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(DataSegment { storage, sections, name })
    }

    /// Verifies the content by its name.
    pub fn verify(&self) -> Result<(), DataError> {
        match !self.storage.is_mapped() || (self.is_whole() && content_name(self.bytes()) == self.name) {
            true => Ok(()),
            false => Err(damaged(Path::new(&self.name))),
        }
    }

    /// Whether the file is as long as when it was mapped.
    pub fn is_whole(&self) -> bool {
        self.storage.is_whole()
    }

    /// The hash of its content.
    pub fn name(&self) -> String {
        match self.storage.is_mapped() {
            true => self.name.clone(),
            false => content_name(self.bytes()),
        }
    }

    /// The file's content.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    fn section(&self, section: Section) -> &[u8] {
        let (start, end) = self.sections[section as usize];
        &self.storage.bytes()[start..end]
    }

    fn words(&self, section: Section) -> &[u32] {
        bytemuck::cast_slice(self.section(section))
    }

    fn long_words(&self, section: Section) -> &[u64] {
        bytemuck::cast_slice(self.section(section))
    }

    /// The places of its records, ascending.
    pub fn places(&self) -> &[u32] {
        self.words(Section::Places)
    }

    /// Whether the places are 0, 1, 2, …: then they need not be looked at.
    fn has_all_places(&self) -> bool {
        let places = self.places();
        places.last().is_none_or(|&last| last as usize + 1 == places.len())
    }

    /// The place of a record.
    pub fn place_of(&self, record: u32) -> u32 {
        if self.has_all_places() { record } else { self.places()[record as usize] }
    }

    /// The number of the record of a place.
    pub fn find_place(&self, place: u32) -> Option<u32> {
        let places = self.places();
        if self.has_all_places() {
            return ((place as usize) < places.len()).then_some(place);
        }
        places.binary_search(&place).ok().map(|record| record as u32)
    }

    /// The bytes of a record; none are a tombstone.
    pub fn record(&self, record: u32) -> &[u8] {
        record_of(self.section(Section::Records), self.long_words(Section::Ends), record as usize)
    }

    /// The limits that its records are read with: what was accepted once is not refused later.
    pub fn limits(&self) -> Limits {
        let flags = self.words(Section::Facts)[0];
        Limits {
            known_utf8: flags & KNOWN_UTF8 != 0,
            internal_subset: flags & INTERNAL_SUBSET != 0,
            skip_unread_entities: flags & SKIP_UNREAD_ENTITIES != 0,
            ..unlimited()
        }
    }

    /// Adds its names and paths to a vocabulary; the leaf paths by the ids there, each with what of it is
    /// missing in the index.
    pub(super) fn add_to(&self, vocabulary: &mut Vocabulary) -> Vec<(LeafPath, Missing)> {
        let bytes = self.section(Section::NameBytes);
        let mut start = 0;
        let mut next = |end: u32| {
            let text = &bytes[start..end as usize];
            start = end as usize;
            text
        };
        let uris: Vec<UriId> =
            self.words(Section::UriEnds).iter().map(|&end| vocabulary.uri(next(end))).collect();
        let (pairs, _) = self.words(Section::Names).as_chunks::<2>();
        let names: Vec<NameId> =
            pairs.iter().map(|&[uri, end]| vocabulary.name(uris[uri as usize], next(end))).collect();
        let mut paths: Vec<TagPathId> = Vec::new();
        for &[above, name] in self.words(Section::TagPaths).as_chunks::<2>().0 {
            let above = if TagPathId(above).is_none() { TagPathId::NONE } else { paths[above as usize] };
            paths.push(vocabulary.tag_path(above, names[name as usize]));
        }
        let leaf = |&[elements, attribute, missing]: &[u32; 3]| {
            let attribute =
                if NameId(attribute).is_none() { NameId::NONE } else { names[attribute as usize] };
            let missing = match missing {
                0 => Missing::Nothing,
                1 => Missing::Long,
                _ => Missing::All,
            };
            (LeafPath { elements: paths[elements as usize], attribute }, missing)
        };
        self.words(Section::Leaves).as_chunks::<3>().0.iter().map(leaf).collect()
    }

    /// The numbers of the records that have a value at the end of a path, and maybe others.
    pub fn find(&self, leaf: u32, key: Key<'_>) -> &[u32] {
        let Some(wanted) = hash(leaf, key) else { return &[] };
        let buckets = self.words(Section::Buckets);
        let bucket = bucket(wanted, buckets.len() - 1);
        let (start, end) = (buckets[bucket] as usize, buckets[bucket + 1] as usize);
        let hashes = &self.long_words(Section::Hashes)[start..end];
        let first = hashes.partition_point(|&hash| hash < wanted);
        let equal = hashes[first..].iter().take_while(|&&hash| hash == wanted).count();
        &self.words(Section::Found)[start + first..start + first + equal]
    }
}

/// The records of a file of any format, by place.
pub fn read_any_format(path: &Path) -> Result<Vec<(u32, Vec<u8>)>, DataError> {
    let (storage, _, sections) = map(path)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if content_name(storage.bytes()) != name {
        return Err(damaged(path));
    }
    let section = |section: Section| {
        let &(start, end) = sections.get(section as usize)?;
        Some(&storage.bytes()[start..end])
    };
    let read = || -> Option<Vec<(u32, Vec<u8>)>> {
        let places: &[u32] = bytemuck::try_cast_slice(section(Section::Places)?).ok()?;
        let ends: &[u64] = bytemuck::try_cast_slice(section(Section::Ends)?).ok()?;
        let records = section(Section::Records)?;
        let record = |(number, &place)| (place, record_of(records, ends, number).to_vec());
        Some(places.iter().enumerate().map(record).collect())
    };
    read().ok_or_else(|| damaged(path))
}

/// A file with its format and its sections.
type Mapped = (Storage, u32, Vec<(usize, usize)>);

/// Maps a file and reads its header.
fn map(path: &Path) -> Result<Mapped, DataError> {
    let storage = Storage::map(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => damaged(path),
        _ => DataError::new("data-unreadable", format!("{}: {error}", path.display())),
    })?;
    let bytes = storage.bytes();
    let word =
        |at: usize| -> Option<u64> { Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)) };
    let header = || {
        let counts = word(8)?;
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let section = |at: usize| {
            let start = word(16 + at * 16)? as usize;
            let end = start.checked_add(word(24 + at * 16)? as usize)?;
            (start.is_multiple_of(ALIGNMENT) && end <= bytes.len()).then_some((start, end))
        };
        let sections = (0..(counts >> 32) as usize).map(section).collect::<Option<Vec<_>>>()?;
        Some((counts as u32, sections))
    };
    let (format, sections) = header().ok_or_else(|| damaged(path))?;
    Ok((storage, format, sections))
}

pub(super) fn record_of<'b>(records: &'b [u8], ends: &[u64], record: usize) -> &'b [u8] {
    let start = if record == 0 { 0 } else { ends[record - 1] };
    &records[start as usize..ends[record] as usize]
}

fn unlimited() -> Limits {
    Limits {
        document: usize::MAX,
        depth: usize::MAX,
        attributes: usize::MAX,
        namespaces: usize::MAX,
        name: usize::MAX,
        text: usize::MAX,
        expansion: usize::MAX,
        ..Limits::default()
    }
}

/// The flags by which records are read again as they were read first.
pub(super) fn flags(limits: &Limits) -> u32 {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    flag(limits.known_utf8, KNOWN_UTF8)
        | flag(limits.internal_subset, INTERNAL_SUBSET)
        | flag(limits.skip_unread_entities, SKIP_UNREAD_ENTITIES)
}

/// The bucket of a hash, of a power of 2 of them.
pub(super) fn bucket(hash: u64, buckets: usize) -> usize {
    (hash >> 1 >> (63 - buckets.ilog2())) as usize
}

/// The hash of a value at the end of a leaf path; `None` for NaN, which equals nothing. Part of the format.
pub(super) fn hash(leaf: u32, key: Key<'_>) -> Option<u64> {
    let start = mix(GOLDEN, u64::from(leaf) << 1);
    let hash = match key {
        Key::Text(text) => {
            let (words, rest) = text.as_chunks::<8>();
            let hash = words
                .iter()
                .fold(start, |hash, word| folded_multiply(hash ^ u64::from_le_bytes(*word), GOLDEN));
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            mix(folded_multiply(hash ^ u64::from_le_bytes(last), GOLDEN), text.len() as u64)
        }
        Key::Number(number) if number.is_nan() => return None,
        // 0 and -0 are equal.
        Key::Number(number) => mix(start ^ 1, (number + 0.0).to_bits()),
    };
    Some(folded_multiply(hash, GOLDEN ^ hash.rotate_left(32) | 1))
}

pub fn damaged(path: &Path) -> DataError {
    let reason = format!("{} is not what was written: it is damaged, cut short or missing", path.display());
    DataError::new("data-damaged", reason)
}
