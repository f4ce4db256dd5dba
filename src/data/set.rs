//! The records of one name, from segments: an immutable version of a data set.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::builder::{DataBuilder, Selection};
use super::leaf::{KeyStep, KeyTest, LeafPath, ValuePath};
use super::segment::{DataSegment, Key, Missing};
use crate::document::{Capacity, Vocabulary};
use crate::error::{DataError, ReadError};
use crate::ids::NameId;
use crate::limits::Limits;

pub struct DataSet {
    /// The oldest first.
    segments: Vec<Part>,
    /// Of all segments.
    vocabulary: Vocabulary,
    /// With the names of their elements, from the root down.
    paths: Vec<(LeafPath, Box<[NameId]>)>,
    /// The paths some of whose values are not indexed.
    unindexed: FxHashMap<LeafPath, Missing>,
    records: usize,
    /// The limits that all records are read with, if they are the same.
    limits: Option<Limits>,
}

/// A segment, with its numbers for the leaf paths of the data set.
struct Part {
    segment: Arc<DataSegment>,
    leaves: FxHashMap<LeafPath, u32>,
}

/// The records of a segment that have a value: their numbers there.
#[derive(Clone, Copy)]
pub struct FoundRecords<'s> {
    part: usize,
    records: &'s [u32],
}

impl FoundRecords<'_> {
    pub fn count(&self) -> usize {
        self.records.len()
    }
}

impl DataSet {
    /// Reads records into memory; an error tells the number of the record that is refused.
    pub fn read<'r>(
        records: impl Iterator<Item = &'r [u8]>,
        limits: &Limits,
    ) -> Result<DataSet, (usize, ReadError)> {
        let mut builder = DataBuilder::new(Selection::default(), *limits);
        for (number, record) in records.enumerate() {
            builder.add(number as u32, record).map_err(|error| (number, error))?;
        }
        let records = builder.count();
        Ok(DataSet::of(vec![Arc::new(builder.freeze())], records))
    }

    /// The data set of segments, with a number of records that are neither replaced nor removed.
    pub fn of(segments: Vec<Arc<DataSegment>>, records: usize) -> DataSet {
        let capacity = Capacity { names: usize::MAX, tag_paths: usize::MAX, bytes: usize::MAX };
        let mut set = DataSet {
            segments: Vec::new(),
            vocabulary: Vocabulary::with_capacity(capacity),
            paths: Vec::new(),
            unindexed: FxHashMap::default(),
            records,
            limits: segments.first().map(|segment| segment.limits()),
        };
        set.limits = set.limits.filter(|limits| segments.iter().all(|segment| segment.limits() == *limits));
        for segment in segments {
            let leaves = segment.add_to(&mut set.vocabulary);
            for &(leaf, missing) in &leaves {
                let known = set.unindexed.entry(leaf).or_default();
                *known = missing.max(*known);
            }
            let named = |&(leaf, _): &(LeafPath, _)| (leaf, leaf.names(&set.vocabulary).into());
            set.paths.extend(leaves.iter().map(named));
            let leaves = leaves.iter().zip(0..).map(|(&(leaf, _), number)| (leaf, number)).collect();
            set.segments.push(Part { segment, leaves });
        }
        set.paths.sort_unstable();
        set.paths.dedup();
        set
    }

    /// The limits that all records are read with, if they are the same.
    pub fn limits(&self) -> Option<Limits> {
        self.limits
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Arc<DataSegment>> {
        self.segments.iter().map(|part| &part.segment)
    }

    /// The bytes of the record of a place, with the limits to read it with.
    pub fn record(&self, place: u32) -> Option<(&[u8], Limits)> {
        let mut newest_first = self.segments().rev();
        let (segment, record) =
            newest_first.find_map(|segment| Some((segment, segment.find_place(place)?)))?;
        let bytes = segment.record(record);
        (!bytes.is_empty()).then(|| (bytes, segment.limits()))
    }

    /// The places of all records, ascending.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        let mut rests: Vec<(&DataSegment, std::ops::Range<usize>)> =
            self.segments().map(|segment| (&**segment, 0..segment.places().len())).collect();
        std::iter::from_fn(move || {
            loop {
                let next = |(segment, rest): &(&DataSegment, std::ops::Range<usize>)| {
                    rest.clone().next().map(|at| segment.places()[at])
                };
                let place = rests.iter().filter_map(next).min()?;
                let mut is_there = false;
                for one in &mut rests {
                    if next(one) == Some(place) {
                        // The newest is the last.
                        is_there = !one.0.record(one.1.start as u32).is_empty();
                        one.1.start += 1;
                    }
                }
                if is_there {
                    return Some(place);
                }
            }
        })
    }

    /// The paths that a key's path selects; `None` if it selects nodes whose values are not all indexed.
    pub fn paths<N: Fn(NameId) -> bool>(&self, steps: &[KeyStep<N>]) -> Option<Vec<LeafPath>> {
        let selected = self.paths.iter().filter(|(path, names)| path.is_selected(names, steps));
        selected.map(|(path, _)| self.is_indexed(*path, steps).then_some(*path)).collect()
    }

    /// Whether the index has all values at the end of a path, which steps select.
    fn is_indexed<N>(&self, path: LeafPath, steps: &[KeyStep<N>]) -> bool {
        match self.unindexed.get(&path).copied().unwrap_or_default() {
            Missing::Nothing => true,
            Missing::Long => steps.last().is_some_and(|last| last.test == KeyTest::Text),
            Missing::All => false,
        }
    }

    /// The places of the records that have a value at the end of a path, and maybe others.
    pub fn places_with(&self, path: &ValuePath, key: Key<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        for (leaf, _) in self.paths.iter().filter(|(leaf, _)| path.is(*leaf, &self.vocabulary)) {
            self.find(*leaf, key, &mut found);
        }
        self.live(&found)
    }

    /// Appends the records that have a value at the end of a path, and maybe others: those of each segment.
    pub fn find<'s>(&'s self, path: LeafPath, key: Key<'_>, found: &mut Vec<FoundRecords<'s>>) {
        for (part, Part { segment, leaves }) in self.segments.iter().enumerate() {
            if let Some(&leaf) = leaves.get(&path) {
                let records = segment.find(leaf, key);
                if !records.is_empty() {
                    found.push(FoundRecords { part, records });
                }
            }
        }
    }

    /// The places of records that were found, ascending, without those that are replaced or removed.
    pub fn live(&self, found: &[FoundRecords<'_>]) -> Vec<u32> {
        let mut live = Vec::with_capacity(found.iter().map(FoundRecords::count).sum());
        found.iter().for_each(|&found| self.for_each_live(found, |place| live.push(place)));
        live.sort_unstable();
        live.dedup();
        live
    }

    /// Calls `visit` with the places of records of a segment that were found and are neither replaced nor removed.
    fn for_each_live(&self, FoundRecords { part, records }: FoundRecords<'_>, mut visit: impl FnMut(u32)) {
        let (segment, newer) = (&self.segments[part].segment, &self.segments[part + 1..]);
        for place in records.iter().map(|&record| segment.place_of(record)) {
            if newer.iter().all(|newer| newer.segment.find_place(place).is_none()) {
                visit(place);
            }
        }
    }

    /// Calls `visit` with the places of records that have a value at the end of a path, and maybe others.
    pub fn for_each_with(&self, path: LeafPath, key: Key<'_>, mut visit: impl FnMut(u32)) {
        for (part, Part { segment, leaves }) in self.segments.iter().enumerate() {
            if let Some(&leaf) = leaves.get(&path) {
                self.for_each_live(FoundRecords { part, records: segment.find(leaf, key) }, &mut visit);
            }
        }
    }

    /// Refuses files that were cut short since they were opened.
    pub fn check_size(&self) -> Result<(), DataError> {
        match self.segments.iter().all(|part| part.segment.is_whole()) {
            true => Ok(()),
            false => self.verify(),
        }
    }

    /// Verifies all segments again, as when they were opened.
    pub fn verify(&self) -> Result<(), DataError> {
        self.segments.iter().try_for_each(|part| part.segment.verify())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::builder::INNER_VALUE_BYTES;

    /// A step of a key's path, written as `child`, `/descendant`, `@attribute` or `text()`.
    fn step<'s>(set: &'s DataSet, written: &'s str) -> KeyStep<impl Fn(NameId) -> bool + 's> {
        let name = written.trim_start_matches(['/', '@']);
        let test = match written {
            "text()" => KeyTest::Text,
            written if written.contains('@') => KeyTest::Attribute,
            _ => KeyTest::Element,
        };
        let wanted = set.vocabulary().find_name(b"", name.as_bytes());
        KeyStep { test, descends: written.starts_with('/'), admits: move |name| Some(name) == wanted }
    }

    fn found(set: &DataSet, steps: &[&str], key: Key<'_>) -> Option<Vec<u32>> {
        let steps: Vec<_> = steps.iter().map(|written| step(set, written)).collect();
        let mut found = Vec::new();
        for path in set.paths(&steps)? {
            set.find(path, key, &mut found);
        }
        Some(set.live(&found))
    }

    #[test]
    fn records_are_found_by_path_and_value() {
        let records: [&[u8]; 4] = [
            b"<c s='1'><n>Big</n><p><n>x</n></p></c>",
            b"<c s='01'><n>Soft</n><p><n>Big</n></p></c>",
            b"<d s='1'><n>B<!-- -->ig</n></d>",
            b"<c/>",
        ];
        let set = DataSet::read(records.into_iter(), &Limits::default()).unwrap_or_else(|_| panic!());
        let text = |text: &'static str| Key::Text(text.as_bytes());
        assert_eq!(found(&set, &["c", "@s"], text("1")), Some(vec![0]));
        assert_eq!(found(&set, &["c", "@s"], Key::Number(1.0)), Some(vec![0, 1]));
        assert_eq!(found(&set, &["/@s"], text("1")), Some(vec![0, 2]));
        assert_eq!(found(&set, &["c", "n"], text("Big")), Some(vec![0]));
        assert_eq!(found(&set, &["c", "/n"], text("Big")), Some(vec![0, 1]));
        assert_eq!(found(&set, &["c", "n", "text()"], text("Big")), Some(vec![0]));
        assert_eq!(found(&set, &["d", "n"], text("Big")), Some(vec![2]));
        assert_eq!(found(&set, &["d", "n", "text()"], text("ig")), Some(vec![2]));
        assert_eq!(found(&set, &["c"], text("Bigx")), Some(vec![0]));
        assert_eq!(found(&set, &["c"], text("")), Some(vec![3]));
        assert_eq!(found(&set, &["c", "@s"], Key::Number(f64::NAN)), Some(vec![]));
        let long = format!("<c>{}<n/></c>", "x".repeat(INNER_VALUE_BYTES + 1));
        let set =
            DataSet::read([long.as_bytes()].into_iter(), &Limits::default()).unwrap_or_else(|_| panic!());
        assert_eq!(found(&set, &["c"], text("x")), None);
        assert_eq!(found(&set, &["c", "n"], text("")), Some(vec![0]));
    }
}
