//! What a matcher keeps for one segment: scratch space and caches.

use std::sync::Arc;

use crate::data::DataSets;
use crate::engine::cache_stats::{CacheBytes, CacheStats};
use crate::engine::joins::SegmentJoins;
use crate::matching::automaton::dfa::{Cache, Scratch};
use crate::matching::automaton::names::Names;
use crate::matching::candidates::ReportedQueries;
use crate::matching::findings::Findings;
use crate::matching::twigs::compiled::CompiledTwigs;
use crate::matching::twigs::settle::Settler;
use crate::matching::twigs::verify::Memo;
use crate::segment::format::file::Segment;
use crate::transform::Transformer;
use crate::tuning::Tuning;

/// The place of a segment. Its state is made when a message first needs it.
pub(super) struct Slot {
    pub(super) segment: Arc<Segment>,
    pub(super) state: Option<Box<SegmentState>>,
    /// When a message last visited it.
    pub(super) used: u64,
    /// Its joins with the local data of the tenant.
    pub(super) joins: SegmentJoins,
}

impl Slot {
    pub(super) fn open(&mut self) -> &mut SegmentState {
        self.state.as_mut().expect("opened for the message")
    }
}

/// The state of a matcher for one segment.
pub(super) struct SegmentState {
    pub(super) segment: Arc<Segment>,
    pub(super) names: Names,
    pub(super) cache: Cache,
    pub(super) scratch: Scratch,
    pub(super) findings: Findings,
    pub(super) reported: ReportedQueries,
    pub(super) memo: Memo,
    pub(super) compiled: CompiledTwigs,
    pub(super) settler: Settler,
    pub(super) transformer: Transformer,
    /// Whether the last message was matched by the DFA, so that there is a trace of it.
    pub(super) traced: bool,
}

impl SegmentState {
    pub(super) fn boxed(segment: &Arc<Segment>, sets: &Arc<DataSets>, tuning: &Tuning) -> Box<SegmentState> {
        let mut state = Box::new(SegmentState::new(segment.clone(), tuning));
        state.names.attach(segment.view(), sets);
        state
    }

    fn new(segment: Arc<Segment>, tuning: &Tuning) -> SegmentState {
        let view = segment.view();
        let (names, scratch, findings) = (Names::new(view), Scratch::new(&view), Findings::new(view));
        let (reported, settler) = (ReportedQueries::new(view), Settler::new(view, tuning.scan_occurrences));
        SegmentState {
            segment,
            names,
            cache: Cache::new(tuning.cache_bytes),
            scratch,
            findings,
            reported,
            memo: Memo::new(tuning.scan_elements),
            compiled: CompiledTwigs::default(),
            settler,
            transformer: Transformer::default(),
            traced: false,
        }
    }

    /// Memory that counts against the capacity of the matcher.
    pub(super) fn cache_bytes(&self) -> usize {
        self.cache.bytes() + self.transformer.bytes()
    }

    pub(super) fn cache_stats(&self) -> CacheStats {
        let probes = self.cache.probe_cache_bytes();
        let bytes = CacheBytes {
            automaton: self.cache.bytes() - probes,
            probes,
            values: self.cache.value_cache_bytes(),
            transformations: self.transformer.bytes(),
            memo: self.memo.bytes(),
            twigs: self.compiled.bytes(),
            records: 0,
        };
        CacheStats { bytes, states: self.cache.states(), clears: self.cache.clears() }
    }
}
