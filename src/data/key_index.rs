//! Finds the records that have a value at the end of a path.
//!
//! The paths of all elements and attributes are indexed. An entry is a hash of the path with the value, as text or as
//! number, and the record: two arrays, sorted by hash. Records that are found by a collision of hashes do no harm: who
//! asks evaluates the condition on what was found. Text nodes have entries of their own only where they are not the
//! whole value of their element. The long values of elements with child elements are not indexed, because each byte
//! of a record would count as often as it is deep.
//!
//! Finding the records of a key costs a binary search for each leaf path that the path of the key selects.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};

use crate::document::{Document, Vocabulary};
use crate::ids::{ElementId, NameId, TagPathId};
use crate::query::number::number;

/// A path to elements, attributes or text nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeafPath {
    elements: TagPathId,
    /// `NONE`: the elements themselves.
    attribute: NameId,
}

/// Elements with child elements are indexed if their values have at most so many bytes.
const INNER_VALUE_BYTES: usize = 1 << 10;

/// A value to look for.
#[derive(Clone, Copy)]
pub enum Key<'k> {
    Text(&'k [u8]),
    Number(f64),
}

/// Which nodes a step of a key's path selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyTest {
    Element,
    Attribute,
    Text,
}

/// A step of a key's path, whose name test is given as a function.
pub struct KeyStep<N> {
    pub test: KeyTest,
    pub descends: bool,
    pub admits: N,
}

#[derive(Default)]
pub struct KeyIndex {
    /// Sorted, with the record of each beside.
    hashes: Vec<u64>,
    records: Vec<u32>,
    paths: Vec<LeafPath>,
    /// The paths to elements some of whose values are not indexed.
    unindexed: FxHashSet<LeafPath>,
}

impl KeyIndex {
    pub fn of(records: &[Document]) -> KeyIndex {
        let mut entries = Vec::new();
        let mut known: FxHashSet<LeafPath> = FxHashSet::default();
        let mut unindexed: FxHashSet<LeafPath> = FxHashSet::default();
        for (record, document) in records.iter().enumerate() {
            let record = record as u32;
            for (place, element) in document.elements.iter().enumerate() {
                let id = ElementId::from(place);
                let path = LeafPath { elements: element.tag_path, attribute: NameId::NONE };
                known.insert(path);
                let (value, is_inner) = (document.string_value(id), element.end.index() > place + 1);
                if is_inner && value.len() > INNER_VALUE_BYTES {
                    unindexed.insert(path);
                } else {
                    push(path, value, record, &mut entries);
                }
                if is_inner || element.texts.len() > 1 {
                    let values = document.texts_of(id).map(|text| text.content.of(&document.text));
                    values.for_each(|value| push(path, value, record, &mut entries));
                }
                for attribute in document.attributes_of(id) {
                    let path = LeafPath { elements: element.tag_path, attribute: attribute.name };
                    known.insert(path);
                    push(path, document.value(attribute), record, &mut entries);
                }
            }
        }
        entries.sort_unstable();
        entries.dedup();
        let mut paths: Vec<LeafPath> = known.into_iter().collect();
        paths.sort_unstable_by_key(|path| (path.elements, path.attribute));
        let (hashes, records) = entries.into_iter().unzip();
        KeyIndex { hashes, records, paths, unindexed }
    }

    /// The paths that a key's path selects; `None` if it selects nodes whose values are not all indexed.
    pub fn paths<N: Fn(NameId) -> bool>(
        &self,
        vocabulary: &Vocabulary,
        steps: &[KeyStep<N>],
    ) -> Option<Vec<LeafPath>> {
        let last = steps.last()?;
        let selects = |path: &&LeafPath| {
            let mut names = Vec::new();
            let mut above = path.elements;
            while above.is_some() {
                let (parent, name) = vocabulary.tag_path_parts(above);
                names.push(name);
                above = parent;
            }
            names.reverse();
            match last.test {
                KeyTest::Element => path.attribute.is_none() && select(steps, &names),
                KeyTest::Text => path.attribute.is_none() && select_above(steps, &names),
                KeyTest::Attribute => {
                    path.attribute.is_some() && (last.admits)(path.attribute) && select_above(steps, &names)
                }
            }
        };
        let found: Vec<LeafPath> = self.paths.iter().filter(selects).copied().collect();
        let is_indexed = |path: &LeafPath| last.test != KeyTest::Element || !self.unindexed.contains(path);
        found.iter().all(is_indexed).then_some(found)
    }

    /// Appends the records that have a value at the end of a path, and maybe others.
    pub fn find(&self, path: LeafPath, key: Key<'_>, found: &mut Vec<u32>) {
        let Some(wanted) = hash(path, key) else { return };
        let first = self.hashes.partition_point(|&hash| hash < wanted);
        let equal = self.hashes[first..].iter().take_while(|&&hash| hash == wanted).count();
        found.extend_from_slice(&self.records[first..first + equal]);
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.hashes.len() * (size_of::<u64>() + size_of::<u32>())
    }
}

fn push(path: LeafPath, value: &[u8], record: u32, entries: &mut Vec<(u64, u32)>) {
    let keys = [Key::Text(value), Key::Number(number(value))];
    entries.extend(keys.into_iter().filter_map(|key| Some((hash(path, key)?, record))));
}

/// `None` for NaN, which equals nothing.
fn hash(path: LeafPath, key: Key<'_>) -> Option<u64> {
    let mut hasher = FxHasher::default();
    path.hash(&mut hasher);
    match key {
        Key::Text(text) => text.hash(&mut hasher),
        Key::Number(number) if number.is_nan() => return None,
        // 0 and -0 are equal.
        Key::Number(number) => (1_u8, (number + 0.0).to_bits()).hash(&mut hasher),
    }
    Some(hasher.finish())
}

/// Whether steps without the last one select an element of these names from the root down, for a last step that
/// selects its attributes or text nodes.
fn select_above<N: Fn(NameId) -> bool>(steps: &[KeyStep<N>], names: &[NameId]) -> bool {
    let Some((last, above)) = steps.split_last() else { return false };
    match last.descends {
        false => select(above, names),
        true => (0..=names.len()).any(|length| select(above, &names[..length])),
    }
}

/// Whether steps select the element with these names from the root down.
fn select<N: Fn(NameId) -> bool>(steps: &[KeyStep<N>], names: &[NameId]) -> bool {
    let Some((last, above)) = steps.split_last() else { return names.is_empty() };
    let Some((&name, outer)) = names.split_last() else { return false };
    if !(last.admits)(name) {
        return false;
    }
    match last.descends {
        false => select(above, outer),
        true => (0..=outer.len()).any(|length| select(above, &outer[..length])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataSet;
    use crate::limits::Limits;

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
        for path in set.index.paths(set.vocabulary(), &steps)? {
            set.index.find(path, key, &mut found);
        }
        Some(found)
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
