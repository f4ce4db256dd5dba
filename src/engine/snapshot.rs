//! Generations as files: a manifest each, over segments that they share.
//!
//! ```text
//! <hash>.segment  <hash>.texts      a segment and its query texts, named after the segment's content
//! <hash>.removed                    places of removed targets (u32, little-endian), named after itself
//! generation-<number>.manifest      text, one word and its values a line:
//!
//!   tamis 1                         the format of manifests
//!   generation 12
//!   shard                           one for now; what follows belongs to it
//!   summary -                       reserved: always `-`
//!   segment <hash> <hash or ->      a segment, and what was removed of it
//!   end
//! ```
//!
//! A file appears whole, by a rename or link, and is never rewritten; the manifest comes last. So
//! processes may open a directory while another writes to it, and share what they have mapped.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::generation::{Generation, Part};
use crate::error::GenerationError;
use crate::segment::format::file::Segment;
use crate::util::storage::content_name;

/// The version of the format; change it when the meaning of a manifest changes.
const FORMAT: &str = "tamis 1";

/// Writes a generation to a directory, and says under which number it can be opened there: the
/// newest one's if nothing has changed since, else the next.
pub fn write(generation: &Generation, directory: &Path) -> Result<u64, GenerationError> {
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let mut segments = Vec::new();
    for part in generation.parts() {
        let name = part.segment.name();
        put(&directory.join(format!("{name}.segment")), part.segment.bytes())?;
        put(&directory.join(format!("{name}.texts")), part.segment.text_bytes())?;
        segments.push((name, put_removed(part, directory)?));
    }
    let segments: Vec<(&str, &str)> = segments.iter().map(|(name, removed)| (*name, &**removed)).collect();
    loop {
        let newest = newest(directory)?;
        if let Some(number) = newest
            && fs::read(manifest_path(directory, number))
                .is_ok_and(|text| text == manifest(number, &segments).as_bytes())
        {
            return Ok(number);
        }
        let number = generation.number.max(newest.map_or(0, |newest| newest + 1));
        // Another process may have taken the number in the meantime: then look for the newest again.
        if link(&manifest_path(directory, number), manifest(number, &segments).as_bytes())? {
            return Ok(number);
        }
    }
}

/// Opens a generation of a directory, the newest if no number is given, and verifies all its files. Segments are
/// mapped, but for those that are mapped among the parts of another generation already.
pub fn open(directory: &Path, number: Option<u64>, known: &[Part]) -> Result<Generation, GenerationError> {
    let number = match number {
        Some(number) => number,
        None => newest(directory)?.ok_or_else(|| {
            let reason = format!("there is no snapshot in {}", directory.display());
            GenerationError::new("no-snapshot", reason)
        })?,
    };
    let path = manifest_path(directory, number);
    let text = fs::read(&path).map_err(|error| lost(&path, &error))?;
    let text = str::from_utf8(&text).map_err(|_| damaged(&path))?;
    let segments = text.lines().filter_map(|line| line.strip_prefix("segment ")?.split_once(' '));
    let segments: Vec<(&str, &str)> = segments.collect();
    let is_right = |&(name, removed): &(&str, &str)| is_name(name) && (removed == "-" || is_name(removed));
    // A manifest has no hash: it must be exactly what is written for these segments.
    if text != manifest(number, &segments) || !segments.iter().all(is_right) {
        return Err(damaged(&path));
    }
    let parts = segments.iter().map(|(name, removed)| open_part(directory, name, removed, known));
    Generation::new(number, parts.collect::<Result<_, _>>()?)
}

fn open_part(directory: &Path, name: &str, removed: &str, known: &[Part]) -> Result<Part, GenerationError> {
    let file = |suffix: &str| directory.join(format!("{name}.{suffix}"));
    let is_known = |part: &&Part| part.segment.is_mapped() && part.segment.name() == name;
    let segment = match known.iter().find(is_known) {
        Some(part) => part.segment.clone(),
        None => Arc::new(Segment::open(&file("segment"), &file("texts"))?),
    };
    let targets = segment.view().target.len();
    let mut part = Part::new(segment);
    if removed != "-" {
        let path = directory.join(format!("{removed}.removed"));
        let bytes = fs::read(&path).map_err(|error| lost(&path, &error))?;
        let (words, rest) = bytes.as_chunks::<4>();
        let places: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let whole = rest.is_empty() && content_name(&bytes) == removed;
        if !whole || places.iter().any(|&place| place as usize >= targets) {
            return Err(damaged(&path));
        }
        part.remove(&places);
    }
    Ok(part)
}

/// Whether a name can be the hash of a file's content.
pub(super) fn is_name(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The number of the newest generation in a directory.
fn newest(directory: &Path) -> Result<Option<u64>, GenerationError> {
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("generation-")?.strip_suffix(".manifest")?.parse::<u64>().ok()
    };
    Ok(entries.flatten().filter_map(number).max())
}

/// The text of a manifest: each segment with the name of what was removed of it.
fn manifest(number: u64, segments: &[(&str, &str)]) -> String {
    let mut text = format!("{FORMAT}\ngeneration {number}\nshard\nsummary -\n");
    for (name, removed) in segments {
        let _ = writeln!(text, "segment {name} {removed}");
    }
    text.push_str("end\n");
    text
}

fn manifest_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("generation-{number}.manifest"))
}

/// The name of a file with the places removed from a part, written if there are any.
fn put_removed(part: &Part, directory: &Path) -> Result<String, GenerationError> {
    let bytes: Vec<u8> = part.removed().into_iter().flat_map(u32::to_le_bytes).collect();
    if bytes.is_empty() {
        return Ok("-".to_string());
    }
    let name = content_name(&bytes);
    put(&directory.join(format!("{name}.removed")), &bytes)?;
    Ok(name)
}

/// Writes a file named after its content, unless it is there.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<(), GenerationError> {
    match path.exists() {
        true => Ok(()),
        false => link(path, content).map(drop),
    }
}

/// Makes a file appear whole under a name; false if the name was taken.
fn link(path: &Path, content: &[u8]) -> Result<bool, GenerationError> {
    let failed = |error: io::Error| unwritable(path, &error);
    let (draft, mut file) = draft(path).map_err(failed)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    });
    let removed = fs::remove_file(&draft);
    let linked = linked.and_then(|linked| removed.map(|()| linked)).map_err(failed)?;
    if let Some(directory) = path.parent() {
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    }
    Ok(linked)
}

/// A new file beside `path` that no other process writes to.
fn draft(path: &Path) -> io::Result<(PathBuf, File)> {
    for attempt in 0u64.. {
        let draft = path.with_extension(format!("draft-{attempt}"));
        match OpenOptions::new().write(true).create_new(true).open(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (draft, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn unwritable(path: &Path, error: &io::Error) -> GenerationError {
    GenerationError::new("snapshot-unwritable", format!("{}: {error}", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> GenerationError {
    GenerationError::new("snapshot-unreadable", format!("{}: {error}", path.display()))
}

/// A file that belongs to a snapshot and cannot be read: without it the snapshot is incomplete.
fn lost(path: &Path, error: &io::Error) -> GenerationError {
    match error.kind() {
        io::ErrorKind::NotFound => damaged(path),
        _ => unreadable(path, error),
    }
}

fn damaged(path: &Path) -> GenerationError {
    GenerationError::new("snapshot-damaged", format!("{} is not whole", path.display()))
}
