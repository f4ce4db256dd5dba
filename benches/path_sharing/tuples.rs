//! Path-tuple streams (seed 001 §6.3.2), by the kernel's automaton: it says which lines end at an element, and
//! from there up each way that a line takes is a tuple.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use tamis::document::{Document, Vocabulary};
use tamis::engine::index::{Index, Subscription};
use tamis::ids::{ElementId, TrieNodeId};
use tamis::matching::automaton::dfa::{Cache, Dfa, Scratch, Trace};
use tamis::matching::automaton::names::Names;
use tamis::matching::findings::{Findings, Ranks};
use tamis::query::ast::{Axis, NameTest};
use tamis::query::element_path::ElementPath;
use tamis::segment::format::file::Segment;
use tamis::tuning::CACHE_BYTES;

use crate::plan::{Steps, steps};

/// The tuples of a line: for each step the element that it binds, ordered by the last.
#[derive(Default)]
pub struct Tuples {
    width: usize,
    fields: Vec<ElementId>,
}

impl Tuples {
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[ElementId]> {
        self.fields.chunks_exact(self.width)
    }
}

pub struct Engine {
    segment: Arc<Segment>,
    root: TrieNodeId,
    names: Names,
    cache: Cache,
    scratch: Scratch,
    findings: Findings,
    ranks: Ranks,
    paths: Vec<Steps>,
    /// By node of the trie.
    stream_of: FxHashMap<TrieNodeId, u32>,
    /// The streams of an accept set, as soon as it was met.
    members: Vec<Option<Box<[u32]>>>,
    way: Vec<ElementId>,
}

impl Engine {
    pub fn new(lines: &[ElementPath], vocabulary: &Vocabulary) -> Engine {
        let texts: Vec<String> = lines.iter().map(text).collect();
        let mut index = Index::new();
        let rows = texts.iter().enumerate().map(|(at, text)| Subscription::new(at as u64, text));
        let refused = index.load(rows).expect("they fit a segment");
        assert!(refused.is_empty(), "paths are accepted");
        let generation = index.commit().expect("they fit a segment");
        let [part] = generation.parts() else { panic!("one segment") };
        let root = part.tenant("").expect("the tenant").root();
        let segment = part.segment.clone();
        let view = segment.view();
        let mut names = Names::new(view);
        names.update(vocabulary);
        let node = |line: &ElementPath| {
            line.iter().fold(root, |node, step| {
                view.child(node, step.axis, names.label_of(&step.test)).expect("a node of the trie")
            })
        };
        let stream_of = lines.iter().enumerate().map(|(at, line)| (node(line), at as u32)).collect();
        let (cache, scratch) = (Cache::new(CACHE_BYTES), Scratch::new(&view));
        let findings = Findings::new(view);
        let paths = lines.iter().map(|line| steps(line, vocabulary)).collect();
        Engine {
            segment,
            root,
            names,
            cache,
            scratch,
            findings,
            ranks: Ranks::default(),
            paths,
            stream_of,
            members: Vec::new(),
            way: Vec::new(),
        }
    }

    /// Fills the streams of a document.
    pub fn fill(&mut self, document: &Document, streams: &mut Vec<Tuples>) {
        streams.resize_with(self.paths.len(), Tuples::default);
        for (stream, path) in streams.iter_mut().zip(&self.paths) {
            stream.width = path.len();
            stream.fields.clear();
        }
        self.ranks.reset();
        let dfa = Dfa { view: &self.segment.view(), root: self.root, names: &self.names };
        let found =
            dfa.find(document, &mut self.ranks, &mut self.findings, &mut self.cache, &mut self.scratch);
        assert!(found.is_ok(), "the cache is large enough");
        self.findings.clear();
        let trace = Trace::new(&self.cache, &self.scratch);
        self.members.resize(trace.accepts(), None);
        for element in (0..document.elements.len()).map(ElementId::from) {
            let accept = trace.accept_of(element);
            let members = self.members[accept as usize].get_or_insert_with(|| {
                let nodes = trace.nodes_of(accept).iter();
                nodes.filter_map(|node| self.stream_of.get(node).copied()).collect()
            });
            for &stream in members.iter() {
                let steps = &self.paths[stream as usize];
                self.way.resize(steps.len(), element);
                ways(document, steps, element, &mut self.way, &mut streams[stream as usize].fields);
            }
        }
    }
}

/// Appends each way to an element that passes the last of the steps, from the document node.
fn ways(
    document: &Document,
    steps: &[(Axis, tamis::ids::NameId)],
    element: ElementId,
    way: &mut [ElementId],
    fields: &mut Vec<ElementId>,
) {
    let (&(axis, _), before) = steps.split_last().expect("a step");
    way[before.len()] = element;
    let mut above = document.element(element).parent;
    let Some(&(_, name)) = before.last() else {
        if axis == Axis::Descendant || above.is_none() {
            fields.extend_from_slice(way);
        }
        return;
    };
    while above.is_some() {
        if document.element(above).name == name {
            ways(document, before, above, way, fields);
        }
        if axis == Axis::Child {
            return;
        }
        above = document.element(above).parent;
    }
}

fn text(line: &ElementPath) -> String {
    line.iter()
        .map(|step| {
            let NameTest::Name(name) = &step.test else { panic!("names are all that is generated") };
            format!("{}{}", if step.axis == Axis::Child { "/" } else { "//" }, name.local)
        })
        .collect()
}
