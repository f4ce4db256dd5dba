//! The automaton determinised lazily into a bounded cache: nearly every element costs one look-up.
//!
//! A state is a pair of sets: the trie nodes an element binds (its *accept* set, which decides what
//! is found there) and the nodes bound by it or an ancestor that have children by `//` (its
//! *loops*, which only ever grow on the way down). The cache holds what the automaton said and can
//! be dropped at any time; see `nfa` for the same without it.

mod states;
mod values;

use rustc_hash::FxHashMap;

use values::{Class, Met, Probe, Subject};

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::automaton::masks::{MaskList, MaskPool, Scratch};
use crate::matching::automaton::names::Names;
use crate::matching::candidates::blocks::{Block, Blocks};
use crate::matching::findings::{Findings, Ranks};
use crate::matching::values::probe_cache::Recent;
use crate::matching::values::value_cache::Known;
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::util::bitset::Mask;
use crate::util::epoch_set::EpochSet;

/// The cache has no room for what the message needs.
#[derive(Debug)]
pub struct Full;

#[derive(Clone, Copy)]
struct State {
    accept: u32,
    loops: u32,
}

/// What is known of the elements of one tag path.
#[derive(Clone, Copy)]
struct Reached {
    /// `NONE`: nothing yet.
    state: u32,
    accept: u32,
    /// Whether there is something to look at below them.
    is_probed: bool,
}

const NOT_REACHED: Reached = Reached { state: NONE, accept: NONE, is_probed: false };

/// A stretch of the pool of sets.
#[derive(Clone, Copy, Default)]
struct Stretch {
    start: u32,
    len: u32,
}

/// What is found at an element that binds a set of nodes.
#[derive(Clone, Copy)]
struct Accept {
    nodes: Stretch,
    /// How many of them, the first, lead on by `/`.
    inner: u32,
    /// Tagged with their block of rows.
    conditions: MaskList,
    anchors: MaskList,
    /// A stretch of `probes`, by subject: attributes first, so many.
    probes: Stretch,
    attributes: u32,
}

pub struct Dfa {
    starts: FxHashMap<u32, u32>,
    states: Vec<State>,
    state_ids: FxHashMap<u64, u32>,
    transitions: FxHashMap<u64, u32>,
    /// What elements reach, by tag path, from the start that the last document had: the shortest way.
    reached: Vec<Reached>,
    last_start: u32,
    accepts: Vec<Accept>,
    accept_ids: FxHashMap<u64, Vec<u32>>,
    loops: Vec<Stretch>,
    loop_ids: FxHashMap<u64, Vec<u32>>,
    /// Nodes that a set of loops leads to by a name.
    loop_steps: FxHashMap<u64, Stretch>,
    probes: Vec<Probe>,
    /// Their subjects, which are looked through often.
    subjects: Vec<Subject>,
    /// A label and its entries, a stretch of the pool.
    labelled: Vec<(u32, Stretch)>,
    turns: Vec<f64>,
    /// What classes of values say, by probe: conditions, tagged with their block of rows.
    values: FxHashMap<(u32, Class), MaskList>,
    recent: Recent,
    sets: Vec<u32>,
    masks: MaskPool,
    blocks: Blocks,
    /// The stretches of blocks, by tag; that of tag 0 is empty.
    tagged: Vec<Block>,
    /// The tags whose block the document wants.
    given: EpochSet,

    /// The blocks of rows that a document needs.
    wanted: Vec<Block>,
    known: Known,
    /// The short values of a document; what was said of all its values; what is there at all. By
    /// element.
    met: Vec<Met>,
    /// Scratch: those among them that nothing is known of, with their classes.
    asked: Vec<(Met, Class)>,
    tested: Vec<(ElementId, MaskList)>,
    present: Vec<(ElementId, MaskList)>,
    /// Where the conditions stand that its values meet.
    fresh: Vec<(ElementId, (u32, u32))>,
    /// Scratch: the tags of blocks that a document needs.
    tags: Vec<u32>,
    /// Scratch: what a document's elements reached; nodes being gathered; marks on trie nodes.
    path: Vec<Reached>,
    nodes: Vec<u32>,
    marks: EpochSet,
    conditions: Scratch,
    anchors: Scratch,
    /// The accept sets that the document's elements have, flagged if several elements have it.
    visits: EpochSet,
    clears: u64,
}

impl Dfa {
    pub fn new(view: View<'_>) -> Dfa {
        Dfa {
            starts: FxHashMap::default(),
            states: Vec::new(),
            state_ids: FxHashMap::default(),
            transitions: FxHashMap::default(),
            reached: Vec::new(),
            last_start: NONE,
            accepts: Vec::new(),
            accept_ids: FxHashMap::default(),
            loops: Vec::new(),
            loop_ids: FxHashMap::default(),
            loop_steps: FxHashMap::default(),
            probes: Vec::new(),
            subjects: Vec::new(),
            labelled: Vec::new(),
            turns: Vec::new(),
            values: FxHashMap::default(),
            recent: Recent::default(),
            sets: Vec::new(),
            masks: MaskPool::default(),
            blocks: Blocks::default(),
            tagged: vec![Block::default()],
            given: EpochSet::new(1),
            wanted: Vec::new(),
            known: Known::default(),
            met: Vec::new(),
            asked: Vec::new(),
            tested: Vec::new(),
            present: Vec::new(),
            fresh: Vec::new(),
            tags: Vec::new(),
            path: Vec::new(),
            nodes: Vec::new(),
            marks: EpochSet::new(view.node_label.len()),
            conditions: Scratch::new(view.conditions()),
            anchors: Scratch::new(view.anchors()),
            visits: EpochSet::default(),
            clears: 0,
        }
    }

    /// The memory the cache holds, about.
    pub fn bytes(&self) -> usize {
        const MAP_ENTRY: usize = 24;
        let maps =
            self.state_ids.len() + self.transitions.len() + self.loop_steps.len() + self.values.len() * 2;
        let sets = self.accept_ids.len() + self.loop_ids.len();
        self.sets.len() * 4
            + self.recent.bytes()
            + self.blocks.bytes()
            + self.tagged.len() * (size_of::<Block>() + 4)
            + self.turns.len() * 8
            + self.reached.len() * size_of::<Reached>()
            + self.labelled.len() * 12
            + self.masks.bytes()
            + maps * MAP_ENTRY
            + sets * (MAP_ENTRY + 24)
            + self.states.len() * size_of::<State>()
            + self.accepts.len() * (size_of::<Accept>() + 4)
            + self.probes.len() * (size_of::<Probe>() + size_of::<Subject>())
    }

    pub fn states(&self) -> usize {
        self.states.len()
    }

    pub fn clears(&self) -> u64 {
        self.clears
    }

    /// Forgets everything remembered.
    pub fn clear(&mut self) {
        self.clears += 1;
        self.starts.clear();
        self.states.clear();
        self.state_ids.clear();
        self.transitions.clear();
        self.reached.clear();
        self.accepts.clear();
        self.accept_ids.clear();
        self.loops.clear();
        self.loop_ids.clear();
        self.loop_steps.clear();
        self.probes.clear();
        self.subjects.clear();
        self.labelled.clear();
        self.turns.clear();
        self.values.clear();
        self.recent.clear();
        self.sets.clear();
        self.masks.clear();
        self.blocks.clear();
        self.tagged.truncate(1);
        self.given.resize(1);
        self.visits.resize(0);
    }

    /// Matches a document from the root of a tenant. `Err(Full)` leaves partial findings.
    #[allow(clippy::too_many_arguments)]
    pub fn find(
        &mut self,
        view: View<'_>,
        root: u32,
        document: &Document,
        names: &Names,
        ranks: &mut Ranks,
        findings: &mut Findings,
        capacity: usize,
    ) -> Result<(), Full> {
        self.visits.clear();
        self.given.clear();
        let start = self.start(view, root);
        self.path.clear();
        self.wanted.clear();
        self.met.clear();
        self.tested.clear();
        self.present.clear();
        if start != self.last_start {
            self.last_start = start;
            self.reached.clear();
        }
        for (index, element) in document.elements.iter().enumerate() {
            let reached = match self.reached.get(element.tag_path.index()) {
                Some(&reached) if reached.state != NONE => reached,
                _ => self.reach(view, element, names, capacity)?,
            };
            self.path.push(reached);
            self.visit(reached.accept, findings);
            if reached.is_probed {
                let element = ElementId::from(index);
                self.look(view, reached.accept, element, document, names, ranks, findings, capacity)?;
            }
        }
        self.resolve(view, findings, capacity)
    }

    /// Notes what an element's accept set says by itself. A second element in the same document
    /// changes only which anchors are unique, a third changes nothing.
    #[inline]
    fn visit(&mut self, accept: u32, findings: &mut Findings) {
        let (visit, id) = (self.visits.flag(accept), accept);
        let accept = &self.accepts[accept as usize];
        if visit.is_none() {
            self.visits.insert(id);
            let (tag, stretch) = self.masks.head(accept.conditions);
            findings.conditions.or(self.masks.stretch(stretch));
            if tag != 0 {
                let block = self.tagged[tag as usize];
                self.blocks.prefetch(block);
                self.wanted.push(block);
            }
            if !accept.anchors.is_empty() {
                findings.once.count(&mut findings.twice, self.masks.get(accept.anchors));
            }
        } else if visit == Some(false) {
            self.visits.insert_flagged(id);
            findings.twice.or(self.masks.get(accept.anchors));
        }
    }

    /// The rows that the document matched last asks for.
    pub fn wanted(&self) -> (&Blocks, &[Block]) {
        (&self.blocks, &self.wanted)
    }

    /// The anchors that an element of the document matched last binds.
    pub fn anchors_of(&self, element: ElementId) -> &[Mask] {
        self.masks.get(self.accepts[self.accept_of(element) as usize].anchors)
    }

    /// Whether it binds an anchor.
    pub fn binds_anchor(&self, element: ElementId, anchor: u32) -> bool {
        let masks = self.anchors_of(element);
        let word = masks.binary_search_by_key(&(anchor / 64), |mask| mask.word);
        word.is_ok_and(|at| masks[at].bits() >> (anchor % 64) & 1 != 0)
    }

    /// The conditions found at it, but for those about values.
    pub fn conditions_of(&self, element: ElementId) -> &[Mask] {
        self.masks.get(self.accepts[self.accept_of(element) as usize].conditions)
    }

    /// The number of its accept set.
    pub fn accept_of(&self, element: ElementId) -> u32 {
        self.path[element.index()].accept
    }

    /// The trie nodes that the elements of an accept set bind.
    pub fn nodes_of(&self, accept: u32) -> &[u32] {
        slice(&self.sets, self.accepts[accept as usize].nodes)
    }

    /// How many accept sets there are.
    pub fn accepts(&self) -> usize {
        self.accepts.len()
    }

    /// The conditions about values that were found in that document, the last element first.
    pub fn values_found(&self) -> impl Iterator<Item = (ElementId, &[Mask])> {
        self.fresh.iter().rev().map(|&(element, stretch)| (element, self.masks.stretch(stretch)))
    }
}

#[inline(always)]
fn slice(sets: &[u32], stretch: Stretch) -> &[u32] {
    &sets[stretch.start as usize..(stretch.start + stretch.len) as usize]
}
