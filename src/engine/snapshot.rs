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
//!   summary -                       room for what a shard lets through
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
use crate::error::IndexError;
use crate::segment::format::file::{Segment, content_name};

/// Changes with the meaning of a manifest.
const FORMAT: &str = "tamis 1";

/// Writes a generation to a directory, and says under which number it can be opened there: the
/// newest one's if nothing has changed since, else the next.
pub fn write(generation: &Generation, directory: &Path) -> Result<u64, IndexError> {
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let mut content = String::from("shard\nsummary -\n");
    for part in generation.parts() {
        let name = part.segment.name();
        put(&directory.join(format!("{name}.segment")), part.segment.bytes())?;
        put(&directory.join(format!("{name}.texts")), part.segment.text_bytes())?;
        let removed = put_removed(part, directory)?;
        let _ = writeln!(content, "segment {name} {removed}");
    }
    content.push_str("end\n");
    loop {
        let newest = newest(directory)?;
        if let Some(number) = newest
            && read(directory, number)? == manifest(number, &content)
        {
            return Ok(number);
        }
        let number = generation.number.max(newest.map_or(0, |newest| newest + 1));
        // Somebody else may have taken the number meanwhile; then there is a newer newest.
        if link(&manifest_path(directory, number), manifest(number, &content).as_bytes())? {
            return Ok(number);
        }
    }
}

/// Opens a generation of a directory, the newest if no number is given. Segments are mapped, but for
/// those that are among the parts of another generation already.
pub fn open(directory: &Path, number: Option<u64>, known: &[Part]) -> Result<Generation, IndexError> {
    let number = match number {
        Some(number) => number,
        None => newest(directory)?.ok_or_else(|| {
            let reason = format!("there is no snapshot in {}", directory.display());
            IndexError::new("no-snapshot", reason)
        })?,
    };
    let text = read(directory, number)?;
    let path = manifest_path(directory, number);
    let mut lines = text.lines();
    if lines.next() != Some(FORMAT) || text.lines().last() != Some("end") {
        return Err(damaged(&path));
    }
    let mut parts = Vec::new();
    for line in lines {
        let mut words = line.split(' ');
        match words.next() {
            Some("segment") => {
                let (Some(name), Some(removed)) = (words.next(), words.next()) else {
                    return Err(damaged(&path));
                };
                parts.push(open_part(directory, name, removed, known)?);
            }
            Some("generation" | "shard" | "summary" | "end") => {}
            _ => return Err(damaged(&path)),
        }
    }
    Ok(Generation::new(number, parts))
}

fn open_part(directory: &Path, name: &str, removed: &str, known: &[Part]) -> Result<Part, IndexError> {
    let file = |suffix: &str| directory.join(format!("{name}.{suffix}"));
    let segment = match known.iter().find(|part| part.segment.name() == name) {
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

/// The number of the newest generation in a directory.
fn newest(directory: &Path) -> Result<Option<u64>, IndexError> {
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("generation-")?.strip_suffix(".manifest")?.parse::<u64>().ok()
    };
    Ok(entries.flatten().filter_map(number).max())
}

fn manifest(number: u64, content: &str) -> String {
    format!("{FORMAT}\ngeneration {number}\n{content}")
}

fn manifest_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("generation-{number}.manifest"))
}

fn read(directory: &Path, number: u64) -> Result<String, IndexError> {
    let path = manifest_path(directory, number);
    fs::read_to_string(&path).map_err(|error| lost(&path, &error))
}

/// The name of a file with the places removed from a part, written if there are any.
fn put_removed(part: &Part, directory: &Path) -> Result<String, IndexError> {
    let bytes: Vec<u8> = part.removed().into_iter().flat_map(u32::to_le_bytes).collect();
    if bytes.is_empty() {
        return Ok("-".to_string());
    }
    let name = content_name(&bytes);
    put(&directory.join(format!("{name}.removed")), &bytes)?;
    Ok(name)
}

/// Writes a file named after its content, unless it is there.
fn put(path: &Path, content: &[u8]) -> Result<(), IndexError> {
    match path.exists() {
        true => Ok(()),
        false => link(path, content).map(drop),
    }
}

/// Makes a file appear whole under a name; false if the name was taken.
fn link(path: &Path, content: &[u8]) -> Result<bool, IndexError> {
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

/// A new file beside `path` that nobody else writes to.
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

fn unwritable(path: &Path, error: &io::Error) -> IndexError {
    IndexError::new("snapshot-unwritable", format!("{}: {error}", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> IndexError {
    IndexError::new("snapshot-unreadable", format!("{}: {error}", path.display()))
}

/// A file that belongs to a snapshot and cannot be read: without it the snapshot is not whole.
fn lost(path: &Path, error: &io::Error) -> IndexError {
    match error.kind() {
        io::ErrorKind::NotFound => damaged(path),
        _ => unreadable(path, error),
    }
}

fn damaged(path: &Path) -> IndexError {
    IndexError::new("snapshot-damaged", format!("{} is not whole", path.display()))
}
