//! The cache of the lazy DFA: states, and what is found at elements in them, for one segment.
//!
//! It only holds what can be computed from the trie again, so it can be cleared at any time. Sets are stored
//! in shared pools and referred to by ranges of them.

use rustc_hash::FxHashMap;

use super::probes::{Class, Probe, Subject};
use crate::ids::{LabelId, TrieNodeId};
use crate::matching::automaton::masks::{MaskList, MaskPool};
use crate::matching::candidates::blocks::{Blocks, RowBlock};
use crate::matching::values::probe_cache::ProbeCache;
use crate::matching::values::value_cache::ValueCache;
use crate::segment::format::NONE;

/// The cache has no room for what the message needs.
#[derive(Debug)]
pub struct CacheFull;

#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) accept: u32,
    pub(super) loops: u32,
}

/// The state and the accept set that the elements of one tag path reach.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    /// `NONE` if it is not known yet.
    pub(super) state: u32,
    pub(super) accept: u32,
    /// Whether the accept set has probes.
    pub(super) is_probed: bool,
}

pub(super) const NOT_REACHED: Reached = Reached { state: NONE, accept: NONE, is_probed: false };

/// A range of a pool.
#[derive(Clone, Copy, Default)]
pub(super) struct PoolRange {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl PoolRange {
    pub(super) fn between(start: usize, end: usize) -> PoolRange {
        PoolRange { start: start as u32, len: (end - start) as u32 }
    }

    #[inline(always)]
    pub(super) fn of<T>(self, pool: &[T]) -> &[T] {
        &pool[self.start as usize..(self.start + self.len) as usize]
    }
}

/// An accept set: the conditions, anchors and probes at an element that binds these trie nodes.
#[derive(Clone, Copy)]
pub(super) struct Accept {
    pub(super) nodes: PoolRange,
    /// How many of the nodes have children by `/`; they are the first.
    pub(super) inner: u32,
    /// Tagged with their block of rows.
    pub(super) conditions: MaskList,
    pub(super) anchors: MaskList,
    /// A range of `probes`, by subject: so many for attributes, then the others.
    pub(super) probes: PoolRange,
    pub(super) attributes: u32,
}

/// The cache of one segment and one thread.
pub struct Cache {
    /// The memory that it may take.
    pub(super) capacity: usize,
    /// The start state by root.
    pub(super) starts: FxHashMap<TrieNodeId, u32>,
    pub(super) states: Vec<State>,
    pub(super) state_ids: FxHashMap<u64, u32>,
    /// By state and label.
    pub(super) transitions: FxHashMap<u64, u32>,
    /// The states that elements reach from `last_start`, by tag path: a transition for a whole path.
    pub(super) by_tag_path: Vec<Reached>,
    pub(super) last_start: u32,
    pub(super) accepts: Vec<Accept>,
    pub(super) accept_ids: FxHashMap<u64, Vec<u32>>,
    pub(super) loops: Vec<PoolRange>,
    pub(super) loop_ids: FxHashMap<u64, Vec<u32>>,
    /// Nodes that a set of loops leads to by a label.
    pub(super) loop_steps: FxHashMap<u64, PoolRange>,
    pub(super) probes: Vec<Probe>,
    /// The subjects of the probes, apart because they are scanned often.
    pub(super) subjects: Vec<Subject>,
    /// A label and its entries, a range of the pool.
    pub(super) labelled: Vec<(LabelId, PoolRange)>,
    pub(super) breakpoints: Vec<f64>,
    /// The conditions that a class of values satisfies, by probe; tagged with their block of rows.
    pub(super) answers: FxHashMap<(u32, Class), MaskList>,
    /// The same by value, for short values.
    pub(super) probe_cache: ProbeCache,
    /// Which constants of the segment values equal. It has a fixed size and is never cleared.
    pub(super) value_cache: ValueCache,
    /// Sets of trie nodes.
    pub(super) nodes: Vec<TrieNodeId>,
    /// Sets of slots and of entries.
    pub(super) pool: Vec<u32>,
    pub(super) masks: MaskPool,
    pub(super) blocks: Blocks,
    /// The block of each tag; that of tag 0 is empty.
    pub(super) block_of_tag: Vec<RowBlock>,
    clears: u64,
}

impl Cache {
    /// An empty cache that may take `capacity` bytes.
    pub fn new(capacity: usize) -> Cache {
        Cache {
            capacity,
            starts: FxHashMap::default(),
            states: Vec::new(),
            state_ids: FxHashMap::default(),
            transitions: FxHashMap::default(),
            by_tag_path: Vec::new(),
            last_start: NONE,
            accepts: Vec::new(),
            accept_ids: FxHashMap::default(),
            loops: Vec::new(),
            loop_ids: FxHashMap::default(),
            loop_steps: FxHashMap::default(),
            probes: Vec::new(),
            subjects: Vec::new(),
            labelled: Vec::new(),
            breakpoints: Vec::new(),
            answers: FxHashMap::default(),
            probe_cache: ProbeCache::default(),
            value_cache: ValueCache::default(),
            nodes: Vec::new(),
            pool: Vec::new(),
            masks: MaskPool::default(),
            blocks: Blocks::default(),
            block_of_tag: vec![RowBlock::default()],
            clears: 0,
        }
    }

    /// Sets the memory that the cache may take from now on. If a message needs more, its search fails.
    pub fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
    }

    /// Memory that is counted against the capacity, approximately.
    pub fn bytes(&self) -> usize {
        const MAP_ENTRY: usize = 24;
        let maps =
            self.state_ids.len() + self.transitions.len() + self.loop_steps.len() + self.answers.len() * 2;
        let sets = self.accept_ids.len() + self.loop_ids.len();
        (self.nodes.len() + self.pool.len()) * 4
            + self.probe_cache.bytes()
            + self.blocks.bytes()
            + self.block_of_tag.len() * (size_of::<RowBlock>() + 4)
            + self.breakpoints.len() * 8
            + self.by_tag_path.len() * size_of::<Reached>()
            + self.labelled.len() * 12
            + self.masks.bytes()
            + maps * MAP_ENTRY
            + sets * (MAP_ENTRY + 24)
            + self.states.len() * size_of::<State>()
            + self.accepts.len() * (size_of::<Accept>() + 4)
            + self.probes.len() * (size_of::<Probe>() + size_of::<Subject>())
    }

    /// The part of `bytes` that holds answers by value.
    pub fn probe_cache_bytes(&self) -> usize {
        self.probe_cache.bytes()
    }

    /// Memory of the value cache, which has a fixed size and is not counted against the capacity.
    pub fn value_cache_bytes(&self) -> usize {
        self.value_cache.bytes()
    }

    /// Fails if there is no room for more.
    pub(super) fn check_room(&self) -> Result<(), CacheFull> {
        if self.bytes() > self.capacity { Err(CacheFull) } else { Ok(()) }
    }

    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// How many accept sets there are.
    pub fn accepts(&self) -> usize {
        self.accepts.len()
    }

    /// How often it was cleared. Numbers of states and accept sets are valid until then.
    pub fn clears(&self) -> u64 {
        self.clears
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.clears += 1;
        self.starts.clear();
        self.states.clear();
        self.state_ids.clear();
        self.transitions.clear();
        self.by_tag_path.clear();
        self.accepts.clear();
        self.accept_ids.clear();
        self.loops.clear();
        self.loop_ids.clear();
        self.loop_steps.clear();
        self.probes.clear();
        self.subjects.clear();
        self.labelled.clear();
        self.breakpoints.clear();
        self.answers.clear();
        self.probe_cache.clear();
        self.nodes.clear();
        self.pool.clear();
        self.masks.clear();
        self.blocks.clear();
        self.block_of_tag.truncate(1);
    }
}
