//! A frozen, compiled set of queries: flat arrays in memory or in a mapped file.
//!
//! A segment is named by the hash of its content (BLAKE3), which is verified when its file is mapped: about 0.15 ms
//! per MB. Each query text is verified when it is read, by the id of its query, which is the hash of the text. So
//! damage is always refused, even if other files say that the content is right.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::GenerationError;
use crate::ids::SegmentQuery;
use crate::query::QueryId;
use crate::segment::format::columns::{COLUMNS, COUNTS, Columns, View};
use crate::util::storage::{Storage, content_name};

const MAGIC: [u8; 8] = *b"tamisseg";
/// The version of the format; increment it when the meaning of a column changes.
pub const FORMAT: u32 = 8;
const ALIGNMENT: usize = 64;
const HEADER: usize = 16 + COLUMNS * 16;

/// A segment never changes. Its name is the hash of its content.
pub struct Segment {
    storage: Storage,
    sections: [(usize, usize); COLUMNS],
    /// A copy of the first column, by which memory is reserved: a disk cannot damage it any more.
    counts: [u32; COUNTS],
    texts: Texts,
    name: String,
}

impl Segment {
    pub fn new(columns: &Columns, texts: &[u8], text_ends: &[u64]) -> Segment {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend((COLUMNS as u32).to_le_bytes());
        let sections = columns.sections();
        let mut at = HEADER;
        let mut places = [(0, 0); COLUMNS];
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
        let name = content_name(whole);
        let texts = Texts::new(texts, text_ends);
        let counts = columns.counts.as_slice().try_into().expect("as many counts as there are");
        Segment { storage: Storage::Memory(words), sections: places, counts, texts, name }
    }

    /// Maps a segment, verifies its content by its name, and maps its texts.
    pub fn open(segment: &Path, texts_path: &Path) -> Result<Segment, GenerationError> {
        let storage = map(segment)?;
        let name = segment.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if content_name(storage.bytes()) != name {
            return Err(damaged(segment));
        }
        let sections = places(storage.bytes()).ok_or_else(|| other_format(segment))?;
        let texts = Texts { storage: map(texts_path)? };
        let view = View::of(slices(&storage, &sections)).ok_or_else(|| other_format(segment))?;
        if texts.len() != Some(view.queries()) {
            return Err(damaged(texts_path));
        }
        let counts = view.counts.try_into().map_err(|_| other_format(segment))?;
        Ok(Segment { storage, sections, counts, texts, name })
    }

    /// Verifies the content by its name, and all texts. What is mapped can be damaged after it was opened.
    pub fn verify(&self) -> Result<(), GenerationError> {
        self.check_size()?;
        if content_name(self.bytes()) != self.name {
            return Err(damaged(&self.path("segment")));
        }
        self.view().all_queries().try_for_each(|query| self.text(query).map(drop))
    }

    /// Refuses files that were cut short since they were opened. Costs two system calls.
    pub fn check_size(&self) -> Result<(), GenerationError> {
        for (storage, suffix) in [(&self.storage, "segment"), (&self.texts.storage, "texts")] {
            if !storage.is_whole() {
                return Err(damaged(&self.path(suffix)));
            }
        }
        Ok(())
    }

    /// Whether the segment is a mapped file.
    pub fn is_mapped(&self) -> bool {
        self.storage.is_mapped()
    }

    /// The name of one of its files.
    fn path(&self, suffix: &str) -> PathBuf {
        Path::new(&self.name).with_extension(suffix)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's content.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// The content of the file of query texts.
    pub fn text_bytes(&self) -> &[u8] {
        self.texts.storage.bytes()
    }

    pub fn view(&self) -> View<'_> {
        let view =
            View::of(slices(&self.storage, &self.sections)).expect("checked when the segment was made");
        View { counts: &self.counts, ..view }
    }

    /// The canonical text of a query, verified by the query's id.
    pub fn text(&self, query: SegmentQuery) -> Result<&str, GenerationError> {
        let text = self.texts.get(query.index());
        text.filter(|text| QueryId::of(text) == self.query_id(query))
            .ok_or_else(|| damaged(&self.path("texts")))
    }

    pub fn query_id(&self, query: SegmentQuery) -> QueryId {
        QueryId(self.view().query_id[query.index()])
    }
}

fn slices<'s>(storage: &'s Storage, sections: &[(usize, usize); COLUMNS]) -> [&'s [u8]; COLUMNS] {
    let bytes = storage.bytes();
    sections.map(|(start, end)| &bytes[start..end])
}

fn map(path: &Path) -> Result<Storage, GenerationError> {
    Storage::map(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(path),
        _ => GenerationError::new("segment-unreadable", format!("{}: {error}", path.display())),
    })
}

fn damaged(path: &Path) -> GenerationError {
    let reason = format!("{} is not what was written: it is damaged, cut short or missing", path.display());
    GenerationError::new("segment-damaged", reason)
}

fn other_format(path: &Path) -> GenerationError {
    let reason = format!("{} is not of format {FORMAT}: another version of tamis wrote it", path.display());
    GenerationError::new("segment-format", reason)
}

fn places(bytes: &[u8]) -> Option<[(usize, usize); COLUMNS]> {
    let word =
        |at: usize| -> Option<u64> { Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)) };
    let counts = word(8)?;
    if bytes.get(..8)? != MAGIC || counts as u32 != FORMAT || (counts >> 32) as usize != COLUMNS {
        return None;
    }
    let mut places = [(0, 0); COLUMNS];
    for (at, place) in places.iter_mut().enumerate() {
        let start = word(16 + at * 16)? as usize;
        let end = start.checked_add(word(24 + at * 16)? as usize)?;
        if !start.is_multiple_of(ALIGNMENT) || end > bytes.len() {
            return None;
        }
        *place = (start, end);
    }
    Some(places)
}

/// Canonical query texts: a count, the end of each, then all of them. Kept apart from the segment,
/// because matching does not read them.
struct Texts {
    storage: Storage,
}

impl Texts {
    fn new(texts: &[u8], ends: &[u64]) -> Texts {
        let start = 1 + ends.len();
        let mut words = vec![0u64; start + texts.len().div_ceil(8)];
        words[0] = ends.len() as u64;
        words[1..start].copy_from_slice(ends);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words[start..]);
        bytes[..texts.len()].copy_from_slice(texts);
        Texts { storage: Storage::Memory(words) }
    }

    fn word(&self, at: usize) -> Option<usize> {
        let bytes = self.storage.bytes().get(at * 8..at * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    /// How many texts there are, if the file is whole.
    fn len(&self) -> Option<usize> {
        let count = self.word(0)?;
        let last = if count == 0 { 0 } else { self.word(count)? };
        let start = count.checked_add(1)?.checked_mul(8)?;
        (start.checked_add(last)? <= self.storage.bytes().len()).then_some(count)
    }

    /// The text of a query; `None` if the file is damaged.
    fn get(&self, query: usize) -> Option<&str> {
        let base = self.word(0)?.checked_add(1)?.checked_mul(8)?;
        let start = if query == 0 { 0 } else { self.word(query)? };
        let (start, end) = (base.checked_add(start)?, base.checked_add(self.word(query + 1)?)?);
        std::str::from_utf8(self.storage.bytes().get(start..end)?).ok()
    }
}
