//! The streams of a message, read off the states of the shared automaton.

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::automaton::dfa::Dfa;
use crate::transform::plan::Network;
use crate::tuning::ACCEPT_SET_WORDS;
use crate::util::bitset::ones;

/// Which accept sets the elements of a stream have: remembered, as accept sets are. The elements of a message
/// are laid out by accept set, and a stream is put together when somebody asks for it.
#[derive(Default)]
pub struct ElementsByAcceptSet {
    of_node: FxHashMap<u32, u32>,
    accepts: Vec<Accept>,
    /// Per stream its accept sets, a bit for each; and how many words that is for all.
    members: Vec<Vec<u64>>,
    kept: usize,
    /// How often the automaton's cache was cleared when this was remembered.
    clears: u64,
    /// The accept sets that occur in the message, a bit for each; and its elements, by accept set.
    present: Vec<u64>,
    by_accept: Vec<ElementId>,
}

/// An accept set.
#[derive(Clone, Copy, Default)]
struct Accept {
    /// How many elements of the message have it, and where they stand when all are laid out.
    count: u32,
    start: u32,
    end: u32,
    /// Among so many streams, it is known to which it belongs.
    streams: u32,
}

impl ElementsByAcceptSet {
    /// Goes over to a document that the automaton has just matched.
    pub fn fill(&mut self, network: &Network, dfa: &Dfa, document: &Document) {
        for (id, plan) in network.stream_plans.iter().enumerate().skip(self.members.len()) {
            self.of_node.insert(plan.node, id as u32);
            self.members.push(Vec::new());
        }
        if self.clears != dfa.clears() || self.kept > ACCEPT_SET_WORDS {
            self.clears = dfa.clears();
            self.accepts.clear();
            self.members.iter_mut().for_each(Vec::clear);
            self.kept = 0;
        }
        self.accepts.resize(dfa.accepts(), Accept::default());
        self.accepts.iter_mut().for_each(|accept| accept.count = 0);
        for element in 0..document.elements.len() {
            self.accepts[dfa.accept_of(element.into()) as usize].count += 1;
        }
        self.present.clear();
        self.present.resize(self.accepts.len().div_ceil(64), 0);
        let mut start = 0;
        for at in 0..self.accepts.len() {
            let accept = &mut self.accepts[at];
            if accept.count == 0 {
                continue;
            }
            self.present[at / 64] |= 1 << (at % 64);
            // It goes on to the end while elements are laid out.
            (accept.start, accept.end) = (start, start);
            start += accept.count;
            if accept.streams as usize != self.members.len() {
                self.learn(at, dfa);
            }
        }
        self.by_accept.resize(document.elements.len(), ElementId::NONE);
        for element in (0..document.elements.len()).map(ElementId::from) {
            let accept = &mut self.accepts[dfa.accept_of(element) as usize];
            self.by_accept[accept.end as usize] = element;
            accept.end += 1;
        }
    }

    /// Finds the streams that an accept set belongs to, among those that are new.
    #[cold]
    fn learn(&mut self, at: usize, dfa: &Dfa) {
        let known = std::mem::replace(&mut self.accepts[at].streams, self.members.len() as u32);
        let streams = dfa.nodes_of(at as u32).iter().filter_map(|node| self.of_node.get(node));
        for &stream in streams.filter(|stream| **stream >= known) {
            let words = &mut self.members[stream as usize];
            let before = words.len();
            words.resize(before.max(at / 64 + 1), 0);
            words[at / 64] |= 1 << (at % 64);
            self.kept += words.len() - before;
        }
    }

    /// Adds the elements of a stream to a set.
    pub fn gather(&self, stream: u32, set: &mut [u64]) {
        for (at, (members, present)) in self.members[stream as usize].iter().zip(&self.present).enumerate() {
            for bit in ones(members & present) {
                let Accept { start, end, .. } = self.accepts[at * 64 + bit as usize];
                for element in &self.by_accept[start as usize..end as usize] {
                    set[element.index() / 64] |= 1 << (element.index() % 64);
                }
            }
        }
    }
}
