//! Adds the records that a message meets to its document: the joins of all queries, each once.
//!
//! A join compares the values at the end of a path of the message with those at the end of a path of records
//! (`query/joined.rs`). The elements whose values are looked up follow from their tag paths, so they are found by one table.
//! Each value is looked up once per message and join, in a cache first. The records are read and copied
//! below a root that only paths with the name of the join lead to; from then on they cost what any part of a message costs.
//!
//! A join that the data cannot serve, because it is not attached or its values are not indexed, adds nothing:
//! `unserved` tells, and the queries that need it are verified.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::data::{DataSets, Key, KeyStep, KeyTest, LeafPath, Records};
use crate::document::{Annex, AnnexNames, Document, Reader, Vocabulary};
use crate::error::Exceeded;
use crate::ids::{ElementId, NameId, TagPathId};
use crate::matching::met_records::MetRecords;
use crate::query::ast::{NameTest, Node};
use crate::query::envelope::is_root;
use crate::query::join_name::{Join, JoinStep};

/// The joins of all segments of a matcher.
#[derive(Default)]
pub struct Joiner {
    joins: Vec<Known>,
    numbers: FxHashMap<String, usize>,
    /// Per tag path of the vocabulary's epoch, the joins whose values lie at its elements; `None` if it is not known.
    by_tag_path: Vec<Option<Box<[u32]>>>,
    epoch: u64,
    kept: MetRecords,
    read: ReadRecord,
    pub work: JoinWork,
}

/// What joining a message took.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct JoinWork {
    /// Values that were looked up.
    pub probes: u64,
    /// Records that were found.
    pub records: u64,
}

struct Known {
    name: String,
    join: Join,
    /// The place of the data set, and the paths of the values in its records; `None` if it cannot serve the join.
    served: Option<(usize, Vec<LeafPath>)>,
    /// Whether the values are those of text nodes.
    of_texts: bool,
    names: AnnexNames,
}

impl Joiner {
    /// The number of a join by its name; it is added if it is new. `None` if it is none.
    pub fn number(&mut self, name: &str, sets: &DataSets) -> Option<usize> {
        if let Some(&known) = self.numbers.get(name) {
            return Some(known);
        }
        let join = Join::of_name(name)?;
        let served = serve(&join, sets);
        let of_texts = join.key.last().is_some_and(|last| last.node == Node::Text);
        let (name, names) = (name.to_string(), AnnexNames::default());
        self.joins.push(Known { name, join, served, of_texts, names });
        self.by_tag_path.clear();
        let number = self.joins.len() - 1;
        self.numbers.insert(self.joins[number].name.clone(), number);
        Some(number)
    }

    /// Forgets all joins, for other segments or other data.
    pub fn clear(&mut self) {
        *self = Joiner::default();
    }

    pub fn is_empty(&self) -> bool {
        self.joins.is_empty()
    }

    /// The memory of its cache in bytes.
    pub fn bytes(&self) -> usize {
        self.kept.memory()
    }

    /// Whether the data cannot serve a join.
    pub fn is_unserved(&self, join: usize) -> bool {
        self.joins[join].served.is_none()
    }

    /// Adds the records that a message meets by some joins to its document; fails if they are more than `limit`.
    pub fn join(
        &mut self,
        wanted: impl Fn(usize) -> bool,
        reader: &mut Reader,
        document: &mut Document,
        records: &Records,
        limit: usize,
    ) -> Result<(), Exceeded> {
        self.start(reader.vocabulary());
        let (met, probes) = self.probe(wanted, reader.vocabulary(), document, records);
        self.work = JoinWork { probes, records: met.len() as u64 };
        if met.len() > limit {
            return Err(Exceeded { value: met.len() as u64, limit: limit as u64 });
        }
        let Joiner { joins, kept, read, .. } = self;
        for of_join in met.chunk_by(|one, other| one.join == other.join) {
            let Known { name, served: Some((set, _)), names, .. } = &mut joins[of_join[0].join as usize]
            else {
                continue;
            };
            let mut annex = Annex::new(reader, document, names, name);
            for &Met { place, range, .. } in of_join {
                let record = match range {
                    Some(range) => read.kept(records, *set, place, kept.record(range)),
                    None => read.stored(records, *set, place),
                };
                annex.add(record, records.vocabulary(*set));
            }
            annex.finish();
        }
        Ok(())
    }

    /// Looks up the values of a message: the records that it meets, by join and place, and how many values there are.
    fn probe(
        &mut self,
        wanted: impl Fn(usize) -> bool,
        vocabulary: &Vocabulary,
        document: &Document,
        records: &Records,
    ) -> (Vec<Met>, u64) {
        let (mut met, mut probed) = (Vec::new(), Probed::default());
        for at in 0..document.elements.len() {
            let element = ElementId::from(at);
            let tag_path = document.element(element).tag_path;
            self.know(tag_path, vocabulary);
            let Joiner { joins, by_tag_path, kept, read, .. } = &mut *self;
            for &number in by_tag_path[tag_path.index()].as_deref().unwrap_or_default() {
                let known = &joins[number as usize];
                if known.served.is_none() || !wanted(number as usize) {
                    continue;
                }
                let mut probe = |value| {
                    if probed.insert((number, value)) {
                        let keep = |(place, range)| met.push(Met { join: number, place, range: Some(range) });
                        if !kept.find(number, value, keep) {
                            find(number, known, value, records, (kept, read), &mut met);
                        }
                    }
                };
                match &known.join.message.last().expect("a path").node {
                    Node::Element(_) => probe(document.string_value(element)),
                    Node::Text => {
                        document.texts_of(element).for_each(|text| probe(text.content.of(&document.text)));
                    }
                    Node::Attribute(test) => {
                        let attributes = document.attributes_of(element).iter();
                        attributes
                            .filter(|attribute| admits(test, attribute.name, vocabulary))
                            .for_each(|attribute| probe(document.value(attribute)));
                    }
                }
            }
        }
        met.sort_unstable_by_key(|met| (met.join, met.place));
        met.dedup_by_key(|met| (met.join, met.place));
        (met, probed.count() as u64)
    }

    /// Ids of names and tag paths are valid for one epoch.
    fn start(&mut self, vocabulary: &Vocabulary) {
        self.kept.renew();
        if self.epoch != vocabulary.epoch() {
            self.epoch = vocabulary.epoch();
            self.by_tag_path.clear();
            self.joins.iter_mut().for_each(|known| known.names = AnnexNames::default());
        }
    }

    /// Finds the joins whose values lie at elements with a tag path.
    #[inline]
    fn know(&mut self, tag_path: TagPathId, vocabulary: &Vocabulary) {
        if self.by_tag_path.len() <= tag_path.index() {
            self.by_tag_path.resize(tag_path.index() + 1, None);
        }
        let joins = &self.joins;
        self.by_tag_path[tag_path.index()].get_or_insert_with(|| {
            let numbered = joins.iter().zip(0..);
            let leading = numbered.filter(|(known, _)| leads_to(&known.join.message, tag_path, vocabulary));
            leading.map(|(_, number)| number).collect()
        });
    }
}

/// A record that a message meets by a join; with the range of its bytes, if the cache has them.
struct Met {
    join: u32,
    place: u32,
    range: Option<(u32, u32)>,
}

/// The record that was read last.
#[derive(Default)]
struct ReadRecord {
    document: Document,
    /// Its data set and place.
    of: Option<(usize, u32)>,
}

impl ReadRecord {
    /// A record whose bytes lie in the data.
    fn stored(&mut self, records: &Records, set: usize, place: u32) -> &Document {
        if self.of != Some((set, place)) {
            self.of = None;
            records.read_into(set, place, &mut self.document);
            self.of = Some((set, place));
        }
        &self.document
    }

    /// A record whose bytes are given.
    fn kept(&mut self, records: &Records, set: usize, place: u32, bytes: &[u8]) -> &Document {
        if self.of != Some((set, place)) {
            self.of = None;
            records.read_bytes_into(set, bytes, &mut self.document);
            self.of = Some((set, place));
        }
        &self.document
    }
}

/// Finds the records that a value meets, which the cache does not know, and keeps them there.
fn find(
    number: u32,
    known: &Known,
    value: &[u8],
    records: &Records,
    (kept, read): (&mut MetRecords, &mut ReadRecord),
    met: &mut Vec<Met>,
) {
    let Some((set, leaves)) = &known.served else { return };
    let data = records.sets().at(*set);
    let first = met.len();
    for &leaf in leaves {
        data.for_each_with(leaf, Key::Text(value), |place| {
            // The index may find others by a collision of hashes.
            let record = read.stored(records, *set, place);
            if any_value(record, leaf, known.of_texts, |known| known == value) {
                met.push(Met { join: number, place, range: None });
            }
        });
    }
    if data.limits().is_some() {
        let found = met[first..].iter().filter_map(|met| Some((met.place, data.record(met.place)?.0)));
        kept.keep(number, value, found);
    }
}

/// The values that were probed: a list, and a set once there are many.
#[derive(Default)]
struct Probed<'d> {
    first: [(u32, &'d [u8]); FEW],
    count: usize,
    others: FxHashSet<(u32, &'d [u8])>,
}

const FEW: usize = 8;

impl<'d> Probed<'d> {
    /// Adds a value of a join; false if it was there.
    fn insert(&mut self, value: (u32, &'d [u8])) -> bool {
        if self.first[..self.count].contains(&value) {
            return false;
        }
        if self.count == FEW {
            return self.others.insert(value);
        }
        self.first[self.count] = value;
        self.count += 1;
        true
    }

    fn count(&self) -> usize {
        self.count + self.others.len()
    }
}

/// Whether a path leads to elements with a tag path, or to their attributes or text nodes.
fn leads_to(steps: &[JoinStep], tag_path: TagPathId, vocabulary: &Vocabulary) -> bool {
    let steps = match steps.split_last() {
        Some((last, above)) if !matches!(last.node, Node::Element(_)) => {
            if last.descends {
                // Of all elements below.
                let mut at = tag_path;
                while at.is_some() {
                    if is_selected(above, at, vocabulary) {
                        return true;
                    }
                    at = vocabulary.tag_path_parts(at).0;
                }
                return above.is_empty() && !is_special(tag_path, vocabulary);
            }
            above
        }
        _ => steps,
    };
    is_selected(steps, tag_path, vocabulary)
}

fn is_selected(steps: &[JoinStep], tag_path: TagPathId, vocabulary: &Vocabulary) -> bool {
    let is_of_envelope = matches!(steps.first(), Some(JoinStep { descends: false, node: Node::Element(test) }) if is_root(test));
    if is_of_envelope != is_special(tag_path, vocabulary) {
        return false;
    }
    let path = LeafPath { elements: tag_path, attribute: NameId::NONE };
    path.is_selected(&path.names(vocabulary), &key_steps(steps, vocabulary))
}

/// Whether the elements of a tag path lie beside the message.
fn is_special(tag_path: TagPathId, vocabulary: &Vocabulary) -> bool {
    let (mut above, mut name) = vocabulary.tag_path_parts(tag_path);
    while above.is_some() {
        (above, name) = vocabulary.tag_path_parts(above);
    }
    vocabulary.name_parts(name).1.starts_with(b"$")
}

/// The data set of a join and the paths of its values; `None` if it does not have all that it needs.
fn serve(join: &Join, sets: &DataSets) -> Option<(usize, Vec<LeafPath>)> {
    let set = sets.find(join.data.as_bytes())?;
    let data = sets.at(set);
    Some((set, data.paths(&key_steps(&join.key, data.vocabulary()))?))
}

fn key_steps<'v>(
    steps: &'v [JoinStep],
    vocabulary: &'v Vocabulary,
) -> Vec<KeyStep<impl Fn(NameId) -> bool + 'v>> {
    let step = |JoinStep { descends, node }: &'v JoinStep| {
        let (test, named) = match node {
            Node::Element(named) => (KeyTest::Element, Some(named)),
            Node::Attribute(named) => (KeyTest::Attribute, Some(named)),
            Node::Text => (KeyTest::Text, None),
        };
        let admits = move |name| named.is_none_or(|named| admits(named, name, vocabulary));
        KeyStep { test, descends: *descends, admits }
    };
    steps.iter().map(step).collect()
}

fn admits(test: &NameTest, name: NameId, vocabulary: &Vocabulary) -> bool {
    let (uri, local) = vocabulary.name_parts(name);
    let uri = vocabulary.uri_text(uri);
    match test {
        NameTest::Any => true,
        NameTest::AnyIn(wanted) => uri == wanted.as_bytes(),
        NameTest::Local(wanted) => local == wanted.as_bytes(),
        NameTest::Name(wanted) => local == wanted.local.as_bytes() && uri == wanted.uri.as_bytes(),
    }
}

/// Whether the value of some element, attribute or text node at the end of a path passes a test.
fn any_value(record: &Document, leaf: LeafPath, of_texts: bool, passes: impl Fn(&[u8]) -> bool) -> bool {
    let places = (0..record.elements.len()).map(ElementId::from);
    places.filter(|&place| record.element(place).tag_path == leaf.elements).any(|place| {
        match leaf.attribute.is_some() {
            true => (record.attributes_of(place).iter())
                .any(|attribute| attribute.name == leaf.attribute && passes(record.value(attribute))),
            false if of_texts => record.texts_of(place).any(|text| passes(text.content.of(&record.text))),
            false => passes(record.string_value(place)),
        }
    })
}
