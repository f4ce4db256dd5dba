//! A frozen, compiled set of queries: flat arrays in memory or in a mapped file.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use crate::error::IndexError;
use crate::query::QueryId;
use crate::segment::format::columns::{COLUMNS, Columns, View};

const MAGIC: [u8; 8] = *b"tamisseg";
/// Changes with the meaning of any column.
pub const FORMAT: u32 = 4;
const ALIGNMENT: usize = 64;
const HEADER: usize = 16 + COLUMNS * 16;

/// Bytes that are aligned for any column: in memory, or mapped.
enum Storage {
    Memory(Vec<u64>),
    Mapped(Mmap),
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Storage::Memory(words) => bytemuck::cast_slice(words),
            Storage::Mapped(map) => map,
        }
    }
}

/// A segment never changes. Its name is the hash of its content.
pub struct Segment {
    storage: Storage,
    sections: [(usize, usize); COLUMNS],
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
        Segment { storage: Storage::Memory(words), sections: places, texts, name }
    }

    /// Maps a segment and its texts. The files were named by their content when they were written
    /// and are never rewritten; here their structure is checked, not every byte.
    pub fn open(segment: &Path, texts: &Path) -> Result<Segment, IndexError> {
        let storage = Storage::Mapped(map(segment)?);
        let sections = places(storage.bytes()).ok_or_else(|| damaged(segment))?;
        let name = segment.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let texts = Texts { storage: Storage::Mapped(map(texts)?) };
        let opened = Segment { storage, sections, texts, name };
        let view = View::of(opened.slices()).ok_or_else(|| damaged(segment))?;
        if view.counts.len() != 5 || opened.texts.len() != Some(view.queries()) {
            return Err(damaged(segment));
        }
        Ok(opened)
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

    fn slices(&self) -> [&[u8]; COLUMNS] {
        let bytes = self.storage.bytes();
        self.sections.map(|(start, end)| &bytes[start..end])
    }

    pub fn view(&self) -> View<'_> {
        View::of(self.slices()).expect("checked when the segment was made")
    }

    /// The canonical text of a query.
    pub fn text(&self, query: u32) -> &str {
        self.texts.get(query as usize)
    }

    pub fn query_id(&self, query: u32) -> QueryId {
        QueryId(self.view().query_id[query as usize])
    }
}

/// The name that content has.
pub fn content_name(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_string()
}

fn map(path: &Path) -> Result<Mmap, IndexError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => damaged(path),
        _ => IndexError::new("segment-unreadable", format!("{}: {error}", path.display())),
    };
    let file = File::open(path).map_err(unreadable)?;
    // SAFETY: segment files are written once under a name that is their content's hash, then only
    // ever read or unlinked; unlinking leaves a mapping valid.
    unsafe { Mmap::map(&file) }.map_err(unreadable)
}

fn damaged(path: &Path) -> IndexError {
    IndexError::new(
        "segment-damaged",
        format!("{} is not a whole segment of format {FORMAT}", path.display()),
    )
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

    fn get(&self, query: usize) -> &str {
        let count = self.word(0).expect("checked when opened");
        let end = |at: usize| self.word(at).unwrap_or(0);
        let start = if query == 0 { 0 } else { end(query) };
        let base = (1 + count) * 8;
        let bytes = &self.storage.bytes()[base + start..base + end(query + 1)];
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}
