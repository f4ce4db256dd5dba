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
//! A generation of several shards names them instead of segments. Queries are numbered through all shards, so their
//! numbers do not depend on which shards are open. What was removed since a shard was built is in one file for all.
//!
//! ```text
//! <hash>.shard                      a shard: the format, `envelope` if a query asks for it, its summary, its segments
//! <hash>.summary                    what its queries need of a message; see `shards::summary`
//! <hash>.targets                    removed targets (u64, little-endian)
//! <hash>.routing                    the index of all summaries; see `shards::routing`
//! generation-<number>.manifest
//!
//!   tamis 2
//!   generation 12
//!   removed <hash or ->
//!   routing <hash or -> <hash or ->  its segment of paths, and the rest
//!   shard <hash or -> <queries>      `-`: a shard without queries
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

use crate::engine::generation::{Generation, Part, Shards};
use crate::engine::shards::{Routing, ShardSet, Summary};
use crate::error::GenerationError;
use crate::query::{Namespaces, parse};
use crate::segment::format::file::Segment;
use crate::util::storage::content_name;

/// The version of the format; change it when the meaning of a manifest changes.
const FORMAT: &str = "tamis 1";

/// Writes a generation to a directory, and says under which number it can be opened there: the
/// newest one's if nothing has changed since, else the next. All its shards must be open; they become one.
pub fn write(generation: &Generation, directory: &Path) -> Result<u64, GenerationError> {
    generation.check_open()?;
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
    let number = number_or_newest(directory, number)?;
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

/// A shard that was written: its name, and how many queries it has.
pub type ShardName = (String, u64);

/// The name of a shard without queries.
pub const EMPTY: &str = "-";

const SHARDED: &str = "tamis 2";
const SHARD: &str = "tamis-shard 1";

/// Writes the segments of a generation of one shard as a shard, with its summary if that may have some bytes. All messages
/// visit a shard without a summary.
pub fn write_shard(
    generation: &Generation,
    directory: &Path,
    summary_bytes: usize,
) -> Result<ShardName, GenerationError> {
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let parts = || generation.parts().iter().filter(|part| part.live() > 0);
    if parts().next().is_none() {
        return Ok((EMPTY.to_string(), 0));
    }
    let (mut text, mut queries) = (format!("{SHARD}\n"), 0);
    if parts().any(Part::asks_envelope) {
        text.push_str("envelope\n");
    }
    if summary_bytes > 0 {
        let summary = summary_of(parts(), summary_bytes)?.write();
        let name = content_name(&summary);
        let path = directory.join(format!("{name}.summary"));
        if fs::read(&path).is_ok_and(|known| known != summary) {
            // It was damaged: shards with equal summaries share the file.
            fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
        put(&path, &summary)?;
        let _ = writeln!(text, "summary {name}");
    }
    for part in parts() {
        let name = part.segment.name();
        put(&directory.join(format!("{name}.segment")), part.segment.bytes())?;
        put(&directory.join(format!("{name}.texts")), part.segment.text_bytes())?;
        let _ = writeln!(text, "segment {name} {}", put_removed(part, directory)?);
        queries += part.segment.view().queries() as u64;
    }
    let name = content_name(text.as_bytes());
    put(&directory.join(format!("{name}.shard")), text.as_bytes())?;
    Ok((name, queries))
}

fn summary_of<'p>(
    parts: impl Iterator<Item = &'p Part>,
    most_bytes: usize,
) -> Result<Summary, GenerationError> {
    let mut summary = Summary::default();
    for part in parts {
        for query in part.segment.view().all_queries() {
            if part.targets(query).next().is_some() {
                let text = part.segment.text(query)?;
                // A canonical text always parses: the kernel wrote it.
                let parsed = parse(text, &Namespaces::default()).expect("a canonical text");
                summary.add(part.tenant_of(query), &parsed);
            }
        }
    }
    summary.fit(most_bytes);
    Ok(summary)
}

/// Writes the routing index of shards; the names of its two files. All messages visit a shard whose summary is missing
/// or damaged: the names of these are returned too.
pub fn write_routing(
    directory: &Path,
    shards: &[ShardName],
    key_bits: u32,
) -> Result<((String, String), Vec<String>), GenerationError> {
    let mut damaged = Vec::new();
    let mut summaries = Vec::with_capacity(shards.len());
    for (name, _) in shards {
        if name == EMPTY {
            summaries.push(Some(Summary::default()));
            continue;
        }
        let file = ShardFile::read(directory, name)?;
        let Some(summary) = file.summary else {
            summaries.push(None);
            continue;
        };
        let bytes = fs::read(directory.join(format!("{summary}.summary"))).unwrap_or_default();
        let summary = (content_name(&bytes) == summary).then(|| Summary::read(&bytes)).flatten();
        if summary.is_none() {
            damaged.push(name.clone());
        }
        summaries.push(summary);
    }
    let routing = Routing::build(&summaries, key_bits)?;
    let segment = routing.segment();
    put(&directory.join(format!("{}.segment", segment.name())), segment.bytes())?;
    put(&directory.join(format!("{}.texts", segment.name())), segment.text_bytes())?;
    put(&directory.join(format!("{}.routing", routing.table_name())), routing.table_bytes())?;
    Ok(((segment.name().to_string(), routing.table_name().to_string()), damaged))
}

/// Writes the manifest of a generation of shards. The number must be free. The routing index is of the first shards, in
/// order; all messages visit those after them. Removed targets are those of all shards but the last.
pub fn write_shards(
    directory: &Path,
    number: u64,
    shards: &[ShardName],
    removed: &[u64],
    routing: Option<&(String, String)>,
) -> Result<(), GenerationError> {
    let removed_name = match removed {
        [] => EMPTY.to_string(),
        _ => {
            let bytes: Vec<u8> = removed.iter().flat_map(|target| target.to_le_bytes()).collect();
            let name = content_name(&bytes);
            put(&directory.join(format!("{name}.targets")), &bytes)?;
            name
        }
    };
    let none = (EMPTY.to_string(), EMPTY.to_string());
    let text = sharded_manifest(number, &removed_name, routing.unwrap_or(&none), shards);
    let path = manifest_path(directory, number);
    if link(&path, text.as_bytes())? || fs::read(&path).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    let reason = format!("{} exists already", path.display());
    Err(GenerationError::new("snapshot-unwritable", reason))
}

fn sharded_manifest(number: u64, removed: &str, routing: &(String, String), shards: &[ShardName]) -> String {
    let (paths, table) = routing;
    let mut text = format!("{SHARDED}\ngeneration {number}\nremoved {removed}\nrouting {paths} {table}\n");
    for (name, queries) in shards {
        let _ = writeln!(text, "shard {name} {queries}");
    }
    text.push_str("end\n");
    text
}

/// The manifest of a shard.
struct ShardFile {
    asks_envelope: bool,
    summary: Option<String>,
    segments: Vec<(String, String)>,
}

impl ShardFile {
    fn read(directory: &Path, name: &str) -> Result<ShardFile, GenerationError> {
        let path = directory.join(format!("{name}.shard"));
        let text = fs::read(&path).map_err(|error| lost(&path, &error))?;
        if content_name(&text) != name {
            return Err(damaged(&path));
        }
        let text = str::from_utf8(&text).map_err(|_| damaged(&path))?;
        let mut lines = text.lines();
        if lines.next() != Some(SHARD) {
            let reason =
                format!("{} is not of this format: another version of tamis wrote it", path.display());
            return Err(GenerationError::new("segment-format", reason));
        }
        let mut file = ShardFile { asks_envelope: false, summary: None, segments: Vec::new() };
        for line in lines {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["envelope"] => file.asks_envelope = true,
                ["summary", summary] => file.summary = Some(summary.to_string()),
                ["segment", segment, removed] => {
                    file.segments.push((segment.to_string(), removed.to_string()));
                }
                _ => return Err(damaged(&path)),
            }
        }
        Ok(file)
    }
}

/// Opens some shards of a generation, or all. Files of other shards need not be there, except `<hash>.shard`. Shares what
/// another generation has mapped.
pub fn open_some(
    directory: &Path,
    number: Option<u64>,
    known: &Generation,
    wanted: Option<&[u32]>,
) -> Result<Generation, GenerationError> {
    let number = number_or_newest(directory, number)?;
    let path = manifest_path(directory, number);
    let text = fs::read(&path).map_err(|error| lost(&path, &error))?;
    let text = str::from_utf8(&text).map_err(|_| damaged(&path))?;
    if !text.starts_with(SHARDED) {
        return open(directory, Some(number), known.parts());
    }
    let value = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
    let removed = value("removed ").ok_or_else(|| damaged(&path))?;
    let (paths, table) =
        value("routing ").and_then(|value| value.split_once(' ')).ok_or_else(|| damaged(&path))?;
    let shards: Option<Vec<ShardName>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("shard ")?.split_once(' '))
        .map(|(name, queries)| Some((name.to_string(), queries.parse().ok()?)))
        .collect();
    let all = shards.ok_or_else(|| damaged(&path))?;
    let is_right = |name: &str| name == EMPTY || is_name(name);
    let names = [removed, paths, table];
    if text != sharded_manifest(number, removed, &(paths.to_string(), table.to_string()), &all)
        || !names.into_iter().chain(all.iter().map(|(name, _)| name.as_str())).all(is_right)
    {
        return Err(damaged(&path));
    }
    let removed = read_targets(directory, removed)?;
    let known_routing = known.shards().and_then(|shards| shards.routing.as_ref());
    let routing = match paths {
        EMPTY => None,
        _ => Some(Routing::open(directory, paths, table, known_routing)?),
    };
    let mut open = ShardSet::new(all.len());
    let (mut parts, mut asks_envelope) = (Vec::new(), false);
    for (shard, (name, queries)) in all.iter().enumerate() {
        let is_wanted = wanted.is_none_or(|wanted| wanted.contains(&(shard as u32)));
        if name == EMPTY {
            open.insert(shard as u32);
            continue;
        }
        let file = ShardFile::read(directory, name)?;
        asks_envelope |= file.asks_envelope;
        if !is_wanted {
            continue;
        }
        open.insert(shard as u32);
        let mut count = 0;
        for (segment, own_removed) in &file.segments {
            let mut part = open_part(directory, segment, own_removed, known.parts())?;
            part.shard = shard as u32;
            // The last shard takes the changes, also targets that are added again.
            if shard + 1 < all.len() {
                let places: Vec<u32> = removed.iter().filter_map(|&target| part.find(target)).collect();
                part.remove(&places);
            }
            count += part.segment.view().queries() as u64;
            parts.push(part);
        }
        if count != *queries {
            return Err(damaged(&path));
        }
    }
    Generation::of_shards(number, parts, Shards { all, open, routing, asks_envelope })
}

fn read_targets(directory: &Path, name: &str) -> Result<Vec<u64>, GenerationError> {
    if name == EMPTY {
        return Ok(Vec::new());
    }
    let path = directory.join(format!("{name}.targets"));
    let bytes = fs::read(&path).map_err(|error| lost(&path, &error))?;
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || content_name(&bytes) != name {
        return Err(damaged(&path));
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// The files of a shard: the names that other hosts fetch.
pub fn shard_files(directory: &Path, name: &str) -> Result<Vec<String>, GenerationError> {
    if name == EMPTY {
        return Ok(Vec::new());
    }
    let file = ShardFile::read(directory, name)?;
    let mut names = vec![format!("{name}.shard")];
    names.extend(file.summary.map(|summary| format!("{summary}.summary")));
    for (segment, removed) in file.segments {
        names.extend([format!("{segment}.segment"), format!("{segment}.texts")]);
        if removed != EMPTY {
            names.push(format!("{removed}.removed"));
        }
    }
    Ok(names)
}

fn number_or_newest(directory: &Path, number: Option<u64>) -> Result<u64, GenerationError> {
    let none = || format!("there is no snapshot in {}", directory.display());
    let newest = || newest(directory)?.ok_or_else(|| GenerationError::new("no-snapshot", none()));
    number.map_or_else(newest, Ok)
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
