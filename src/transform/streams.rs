//! The streams of a message, read off the states of the shared automaton.

use rustc_hash::FxHashMap;

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::dfa::Dfa;
use crate::transform::network::Network;
use crate::transform::results::Results;

/// Members kept for accept sets; past this they are gathered anew.
const MOST_MEMBERS: usize = 1 << 22;

/// Which streams the elements of an accept set belong to: remembered, as accept sets are.
#[derive(Default)]
pub struct Streams {
    of_node: FxHashMap<u32, u32>,
    accepts: Vec<Members>,
    members: Vec<u32>,
    /// How often the automaton's cache was cleared when this was remembered.
    clears: u64,
}

/// A stretch of `members`, and of how many streams.
#[derive(Clone, Copy, Default)]
struct Members {
    start: u32,
    end: u32,
    streams: u32,
}

impl Streams {
    /// Fills the streams of a document that the automaton has just matched.
    pub fn fill(&mut self, network: &Network, dfa: &Dfa, document: &Document, results: &mut Results) {
        let streams = network.stream_plans.len();
        for (id, plan) in network.stream_plans.iter().enumerate().skip(self.of_node.len()) {
            self.of_node.insert(plan.node, id as u32);
        }
        if self.clears != dfa.clears() || self.members.len() > MOST_MEMBERS {
            self.clears = dfa.clears();
            self.accepts.clear();
            self.members.clear();
        }
        self.accepts.resize(dfa.accepts(), Members::default());
        for element in (0..document.elements.len()).map(ElementId::from) {
            let accept = dfa.accept_of(element);
            let mut known = self.accepts[accept as usize];
            if known.streams as usize != streams {
                let start = self.members.len() as u32;
                self.members.extend(dfa.nodes_of(accept).iter().filter_map(|node| self.of_node.get(node)));
                known = Members { start, end: self.members.len() as u32, streams: streams as u32 };
                self.accepts[accept as usize] = known;
            }
            for &stream in &self.members[known.start as usize..known.end as usize] {
                results.streams.push(stream, element);
            }
        }
    }
}
