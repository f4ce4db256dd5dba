//! The streams of a message, read off the states of the shared automaton.

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::dfa::Dfa;
use crate::transform::network::Network;
use crate::transform::results::Growing;

/// Members kept for streams; past this they are gathered anew.
const MOST_MEMBERS: usize = 1 << 22;

/// Which accept sets the elements of a stream have: remembered, as accept sets are. The elements of a message
/// are linked by accept set, and a stream is put together when somebody asks for it.
#[derive(Default)]
pub struct Streams {
    of_node: FxHashMap<u32, u32>,
    accepts: Vec<Accept>,
    /// Per stream its accept sets, and how many that is for all.
    members: Vec<Vec<u32>>,
    kept: usize,
    /// How often the automaton's cache was cleared when this was remembered.
    clears: u64,
    /// Per element of the message, the next one with the same accept set.
    next: Vec<ElementId>,
    /// Accept sets with this mark are in the message.
    mark: u32,
}

/// An accept set.
#[derive(Clone, Copy)]
struct Accept {
    mark: u32,
    /// The first element of the message that has it.
    first: ElementId,
    /// Among so many streams, it is known to which it belongs.
    streams: u32,
}

impl Streams {
    /// Goes over to a document that the automaton has just matched.
    pub fn fill(&mut self, network: &Network, dfa: &Dfa, document: &Document) {
        for (id, plan) in network.stream_plans.iter().enumerate().skip(self.members.len()) {
            self.of_node.insert(plan.node, id as u32);
            self.members.push(Vec::new());
        }
        if self.clears != dfa.clears() || self.kept > MOST_MEMBERS {
            self.clears = dfa.clears();
            self.accepts.clear();
            self.members.iter_mut().for_each(Vec::clear);
            self.kept = 0;
        }
        self.accepts.resize(dfa.accepts(), Accept { mark: 0, first: ElementId::NONE, streams: 0 });
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.accepts.iter_mut().for_each(|accept| accept.mark = 0);
            self.mark = 1;
        }
        self.next.clear();
        self.next.resize(document.elements.len(), ElementId::NONE);
        for element in (0..document.elements.len()).rev().map(ElementId::from) {
            let at = dfa.accept_of(element);
            let accept = &mut self.accepts[at as usize];
            if accept.mark == self.mark {
                self.next[element.index()] = accept.first;
            }
            accept.mark = self.mark;
            accept.first = element;
            if accept.streams as usize != self.members.len() {
                self.learn(at, dfa);
            }
        }
    }

    /// Finds the streams that an accept set belongs to, among those that are new.
    #[cold]
    fn learn(&mut self, at: u32, dfa: &Dfa) {
        let accept = &mut self.accepts[at as usize];
        let known = std::mem::replace(&mut accept.streams, self.members.len() as u32);
        let streams = dfa.nodes_of(at).iter().filter_map(|node| self.of_node.get(node));
        for &stream in streams.filter(|stream| **stream >= known) {
            self.members[stream as usize].push(at);
            self.kept += 1;
        }
    }

    /// The elements of a stream, in document order.
    pub fn gather(&self, stream: u32, elements: &mut Growing) {
        let accepts = self.members[stream as usize].iter().map(|&accept| self.accepts[accept as usize]);
        for accept in accepts.filter(|accept| accept.mark == self.mark) {
            let mut element = accept.first;
            while element.is_some() {
                elements.push(element);
                element = self.next[element.index()];
            }
        }
        elements.sort();
    }
}
