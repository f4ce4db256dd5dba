//! Versions of data sets as files: a manifest each, over segments that they share.
//!
//! ```text
//! <hash>.records     a segment of records, named after its content
//! <hash>.data        a manifest, named after its content; text, one word and its values a line:
//!
//!   tamis-data 1
//!   records 1000000                 that are neither replaced nor removed
//!   next 1000002                    the place of the next new record
//!   key /row/id                     the path of the record key, or `-`
//!   indexed /row/a /row/b           the paths whose values are indexed, or `*`
//!   segment <hash>                  the oldest first
//!   end
//! ```
//!
//! A file appears whole, by a link, and is never rewritten; the manifest comes last. Opening verifies all files by
//! their names.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::data::{Change, DataBuilder, DataSegment, DataSet, Selection, ValuePath};
use crate::data::{damaged, merge_tiers, read_any_format};
use crate::engine::snapshot::{is_name, put};
use crate::error::DataError;
use crate::limits::Limits;
use crate::util::storage::content_name;

const FORMAT: &str = "tamis-data 1";

/// A version of a data set as it is stored.
pub struct DataFiles {
    pub manifest: String,
    /// The segments with their sizes in bytes, then the manifest.
    pub files: Vec<(String, u64)>,
    pub records: usize,
    pub segments: usize,
    /// Records that are stored and replaced or removed, and tombstones.
    pub removed: usize,
}

/// A manifest.
struct Manifest {
    records: usize,
    next_place: u32,
    selection: Selection,
    segments: Vec<String>,
}

/// Writes a new version of the records of a builder.
pub fn write(builder: DataBuilder, directory: &Path) -> Result<DataFiles, DataError> {
    let (records, selection) = (builder.count(), builder.selection().clone());
    let segments = match records {
        0 => Vec::new(),
        _ => vec![Arc::new(builder.freeze())],
    };
    write_version(&segments, records, records as u32, selection, directory)
}

/// Opens a version, and verifies all its files.
pub fn open(directory: &Path, manifest: &str) -> Result<(DataSet, Selection), DataError> {
    let manifest = Manifest::read(directory, manifest)?;
    let segments = manifest.segments.iter().map(|name| DataSegment::open(&path_of(directory, name)));
    let segments = segments.map(|segment| segment.map(Arc::new)).collect::<Result<_, _>>()?;
    Ok((DataSet::of(segments, manifest.records), manifest.selection))
}

/// Begins a change of a version: with what is found by key only, so its segments are not verified as a whole.
pub fn begin_change(directory: &Path, manifest: &str, limits: Limits) -> Result<Change, DataError> {
    let manifest = Manifest::read(directory, manifest)?;
    let open = |name: &String| DataSegment::open_unverified(&path_of(directory, name)).map(Arc::new);
    let segments = manifest.segments.iter().map(open).collect::<Result<_, _>>()?;
    let base = Arc::new(DataSet::of(segments, manifest.records));
    Change::new(base, manifest.selection, limits, manifest.next_place)
}

/// Writes a changed version.
pub fn write_change(change: Change, directory: &Path) -> Result<DataFiles, DataError> {
    let (base, selection, next_place) = change.base();
    let mut segments: Vec<Arc<DataSegment>> = base.segments().cloned().collect();
    let (mut records, mut next_place) = (base.len(), next_place);
    if let Some(changed) = change.finish()? {
        segments.push(changed.segment);
        (records, next_place) = (changed.records, changed.next_place);
    }
    let segments = merge_tiers(segments, &selection)?;
    write_version(&segments, records, next_place, selection, directory)
}

/// Writes a version whose segments have any format anew, from their records.
pub fn rebuild(directory: &Path, manifest: &str, limits: Limits) -> Result<DataFiles, DataError> {
    let manifest = Manifest::read(directory, manifest)?;
    let mut records: Vec<(u32, usize, Vec<u8>)> = Vec::new();
    for (age, name) in manifest.segments.iter().rev().enumerate() {
        let read = read_any_format(&path_of(directory, name))?;
        records.extend(read.into_iter().map(|(place, record)| (place, age, record)));
    }
    // The newest of the same place comes first.
    records.sort_unstable_by_key(|&(place, age, _)| (place, age));
    records.dedup_by_key(|&mut (place, ..)| place);
    let mut builder = DataBuilder::new(manifest.selection.clone(), limits);
    for (place, _, record) in records.iter().filter(|(.., record)| !record.is_empty()) {
        builder.add(*place, record).map_err(|error| DataError::of_record(*place as usize, &error))?;
    }
    let (count, segments) = (builder.count(), vec![Arc::new(builder.freeze())]);
    write_version(&segments, count, manifest.next_place, manifest.selection, directory)
}

fn write_version(
    segments: &[Arc<DataSegment>],
    records: usize,
    next_place: u32,
    selection: Selection,
    directory: &Path,
) -> Result<DataFiles, DataError> {
    let failed = |reason: String| DataError::new("data-unwritable", reason);
    fs::create_dir_all(directory).map_err(|error| failed(format!("{}: {error}", directory.display())))?;
    let (mut names, mut files, mut stored) = (Vec::new(), Vec::new(), 0);
    for segment in segments {
        let name = segment.name();
        let path = path_of(directory, &name);
        put(&path, segment.bytes()).map_err(|error| failed(error.reason))?;
        files.push((format!("{name}.records"), segment.bytes().len() as u64));
        names.push(name);
        stored += segment.places().len();
    }
    let text = Manifest { records, next_place, selection, segments: names }.text();
    let manifest = format!("{}.data", content_name(text.as_bytes()));
    put(&directory.join(&manifest), text.as_bytes()).map_err(|error| failed(error.reason))?;
    files.push((manifest.clone(), text.len() as u64));
    Ok(DataFiles { manifest, files, records, segments: segments.len(), removed: stored - records })
}

fn path_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.records"))
}

impl Manifest {
    fn read(directory: &Path, name: &str) -> Result<Manifest, DataError> {
        let path = directory.join(name);
        let is_right = |name: &str| name.strip_suffix(".data").is_some_and(is_name);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged(&path),
            _ => DataError::new("data-unreadable", format!("{}: {error}", path.display())),
        })?;
        if !is_right(name) || name.strip_suffix(".data") != Some(&content_name(&text)) {
            return Err(damaged(&path));
        }
        let text = String::from_utf8_lossy(&text);
        if text.lines().next() != Some(FORMAT) {
            let reason = format!("{} was written by another version of tamis", path.display());
            return Err(DataError::new("data-format", reason));
        }
        Manifest::parse(&text).ok_or_else(|| damaged(&path))
    }

    fn parse(text: &str) -> Option<Manifest> {
        let value = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        let paths = |paths: &str| paths.split(' ').map(ValuePath::parse).collect::<Option<Vec<_>>>();
        let key = match value("key")? {
            "-" => None,
            path => Some(ValuePath::parse(path)?),
        };
        let indexed = match value("indexed")? {
            "*" => None,
            "-" => Some(Vec::new()),
            named => Some(paths(named)?),
        };
        let segments = text.lines().filter_map(|line| line.strip_prefix("segment "));
        let segments = segments.map(|name| is_name(name).then(|| name.to_string()));
        Some(Manifest {
            records: value("records")?.parse().ok()?,
            next_place: value("next")?.parse().ok()?,
            selection: Selection { key, indexed },
            segments: segments.collect::<Option<_>>()?,
        })
    }

    fn text(&self) -> String {
        let Manifest { records, next_place, selection, segments } = self;
        let key = selection.key.as_ref().map_or("-", ValuePath::text);
        let indexed = match &selection.indexed {
            None => "*".to_string(),
            Some(none) if none.is_empty() => "-".to_string(),
            Some(indexed) => indexed.iter().map(ValuePath::text).collect::<Vec<_>>().join(" "),
        };
        let mut text =
            format!("{FORMAT}\nrecords {records}\nnext {next_place}\nkey {key}\nindexed {indexed}\n");
        for segment in segments {
            let _ = writeln!(text, "segment {segment}");
        }
        text.push_str("end\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_format_is_refused_and_rebuilt_from_its_records() -> Result<(), DataError> {
        let directory = std::env::temp_dir().join("tamis-data-of-another-format");
        let key = ValuePath::parse("/row/id");
        let mut builder = DataBuilder::new(Selection { key, indexed: None }, Limits::default());
        let record = b"<row><id>7</id></row>";
        builder.add_last(record)?;
        let files = write(builder, &directory)?;
        let read = |name: &str| fs::read(directory.join(name)).unwrap_or_default();
        let put = |content: &[u8], suffix: &str| {
            let name = content_name(content);
            assert!(fs::write(directory.join(format!("{name}.{suffix}")), content).is_ok());
            name
        };
        let mut segment = read(&files.files[0].0);
        segment[8] = 99;
        let other = put(&segment, "records");
        let manifest = String::from_utf8_lossy(&read(&files.manifest)).into_owned();
        let name = files.files[0].0.trim_end_matches(".records");
        let other = put(manifest.replace(name, &other).as_bytes(), "data") + ".data";
        let refused = open(&directory, &other).err();
        assert_eq!(refused.map(|error| error.code), Some("data-format"));
        let anew = rebuild(&directory, &other, Limits::default())?;
        assert_eq!(anew.manifest, files.manifest);
        let (set, _) = open(&directory, &anew.manifest)?;
        assert_eq!(set.record(0).map(|(bytes, _)| bytes), Some(&record[..]));
        assert!(fs::remove_dir_all(&directory).is_ok());
        Ok(())
    }
}
