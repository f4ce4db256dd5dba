//! States of the shared automaton → streams: the elements at the end of each linear path.
//!
//! Matching left every element of the message in a state, and a state has an accept set: the trie nodes, that is
//! linear paths, that end there. A message has few distinct accept sets. So elements are grouped by accept set (a
//! counting sort, one pass over the message), and a stream is the union of the groups of its accept sets, put
//! together only when an operator needs it.
//!
//! Example: with streams `/shop/book` and `//title`, the elements of
//! `<shop><book><title/></book><title/></shop>` have the accept sets {} for `shop`, {`/shop/book`} for `book` and
//! {`//title`} for both titles.

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::ids::TrieNodeId;
use crate::matching::automaton::dfa::Trace;
use crate::transform::plan::Network;
use crate::tuning::ACCEPT_SET_WORDS;
use crate::util::bitset::ones;

#[derive(Default)]
pub struct ElementsByAcceptSet {
    /// The stream that ends at a trie node.
    stream_of_node: FxHashMap<TrieNodeId, u32>,
    /// Cached as long as the automaton caches its accept sets.
    groups: Vec<AcceptGroup>,
    /// The accept sets of each stream, a bit for each.
    accept_sets: Vec<Vec<u64>>,
    /// Words of `accept_sets` over all streams.
    words: usize,
    /// How often the automaton's cache had been cleared when these were computed.
    dfa_clears: u64,
    /// The accept sets that occur in the message, a bit for each.
    present: Vec<u64>,
    /// The elements of the message, sorted by accept set.
    elements: Vec<ElementId>,
}

/// The elements of a message with one accept set: `start..end` of `elements`.
#[derive(Clone, Copy, Default)]
struct AcceptGroup {
    count: u32,
    start: u32,
    end: u32,
    /// The number of streams, the first ones, for which it is known whether they have this accept set.
    known_streams: u32,
}

impl ElementsByAcceptSet {
    /// Groups the elements of a document that the automaton has just matched.
    pub fn group(&mut self, network: &Network, trace: Trace<'_>, document: &Document) {
        for (id, plan) in network.stream_plans.iter().enumerate().skip(self.accept_sets.len()) {
            self.stream_of_node.insert(plan.node, id as u32);
            self.accept_sets.push(Vec::new());
        }
        if self.dfa_clears != trace.clears() || self.words > ACCEPT_SET_WORDS {
            self.dfa_clears = trace.clears();
            self.groups.clear();
            self.accept_sets.fill(Vec::new());
            self.words = 0;
        }
        self.groups.resize(trace.accepts(), AcceptGroup::default());
        self.groups.iter_mut().for_each(|group| group.count = 0);
        for element in 0..document.elements.len() {
            self.groups[trace.accept_of(element.into()) as usize].count += 1;
        }
        self.present.clear();
        self.present.resize(self.groups.len().div_ceil(64), 0);
        let mut start = 0;
        for at in 0..self.groups.len() {
            let group = &mut self.groups[at];
            if group.count == 0 {
                continue;
            }
            self.present[at / 64] |= 1 << (at % 64);
            // `end` advances while elements are added below.
            (group.start, group.end) = (start, start);
            start += group.count;
            if group.known_streams as usize != self.accept_sets.len() {
                self.add_to_streams(at, trace);
            }
        }
        self.elements.resize(document.elements.len(), ElementId::NONE);
        for element in (0..document.elements.len()).map(ElementId::from) {
            let group = &mut self.groups[trace.accept_of(element) as usize];
            self.elements[group.end as usize] = element;
            group.end += 1;
        }
    }

    /// Adds an accept set to the new streams that it belongs to.
    #[cold]
    fn add_to_streams(&mut self, at: usize, trace: Trace<'_>) {
        let known = std::mem::replace(&mut self.groups[at].known_streams, self.accept_sets.len() as u32);
        let streams = trace.nodes_of(at as u32).iter().filter_map(|node| self.stream_of_node.get(node));
        for &stream in streams.filter(|stream| **stream >= known) {
            let words = &mut self.accept_sets[stream as usize];
            let before = words.len();
            words.resize(before.max(at / 64 + 1), 0);
            words[at / 64] |= 1 << (at % 64);
            self.words += words.len() - before;
        }
    }

    /// Memory of its buffers.
    pub fn bytes(&self) -> usize {
        self.stream_of_node.capacity() * size_of::<(TrieNodeId, u32)>()
            + self.groups.capacity() * size_of::<AcceptGroup>()
            + self.accept_sets.capacity() * size_of::<Vec<u64>>()
            + (self.words + self.present.capacity()) * size_of::<u64>()
            + self.elements.capacity() * size_of::<ElementId>()
    }

    /// Adds the elements of a stream to a set, a bit for each element.
    pub fn add_stream_to(&self, stream: u32, set: &mut [u64]) {
        let accept_sets = self.accept_sets[stream as usize].iter().zip(&self.present);
        for (at, (accept_sets, present)) in accept_sets.enumerate() {
            for bit in ones(accept_sets & present) {
                let AcceptGroup { start, end, .. } = self.groups[at * 64 + bit as usize];
                for element in &self.elements[start as usize..end as usize] {
                    set[element.index() / 64] |= 1 << (element.index() % 64);
                }
            }
        }
    }
}
