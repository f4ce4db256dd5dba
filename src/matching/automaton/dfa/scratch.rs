//! The scratch space of a search: what was found in one message, and buffers for new states.

use super::cache::{Cache, Reached};
use super::probes::Class;
use super::values::Pending;
use crate::ids::{ElementId, TrieNodeId};
use crate::matching::automaton::masks::{MaskList, MaskScratch};
use crate::matching::candidates::blocks::RowBlock;
use crate::segment::format::columns::View;
use crate::util::epoch_set::EpochSet;

pub struct Scratch {
    /// The states that the elements of the message reached.
    pub(super) reached: Vec<Reached>,
    /// The accept sets of its elements, flagged if several elements have it.
    pub(super) visits: EpochSet,
    /// The blocks of rows to read, and the tags of those that values led to.
    pub(super) wanted: Vec<RowBlock>,
    pub(super) wanted_tags: EpochSet,
    /// Short values whose answers are looked up at the end.
    pub(super) pending: Vec<Pending>,
    /// Those among them that are not in the probe cache, with their classes.
    pub(super) misses: Vec<(Pending, Class)>,
    /// By element: the conditions that its values satisfy, and those that any value satisfies.
    pub(super) tested: Vec<(ElementId, MaskList)>,
    pub(super) present: Vec<(ElementId, MaskList)>,
    /// Both, as ranges of the pool of masks.
    pub(super) value_conditions: Vec<(ElementId, (u32, u32))>,
    pub(super) tags: Vec<u32>,

    // A set of nodes that becomes a state: the nodes, marks on trie nodes, its conditions and anchors.
    pub(super) nodes: Vec<TrieNodeId>,
    pub(super) marks: EpochSet,
    pub(super) conditions: MaskScratch,
    pub(super) anchors: MaskScratch,
}

impl Scratch {
    pub fn new(view: &View<'_>) -> Scratch {
        Scratch {
            reached: Vec::new(),
            visits: EpochSet::default(),
            wanted: Vec::new(),
            wanted_tags: EpochSet::default(),
            pending: Vec::new(),
            misses: Vec::new(),
            tested: Vec::new(),
            present: Vec::new(),
            value_conditions: Vec::new(),
            tags: Vec::new(),
            nodes: Vec::new(),
            marks: EpochSet::new(view.node_label.len()),
            conditions: MaskScratch::new(view.conditions()),
            anchors: MaskScratch::new(view.anchors()),
        }
    }

    /// Starts a message.
    pub(super) fn reset(&mut self, cache: &Cache) {
        self.visits.clear();
        self.visits.resize(cache.accepts.len());
        self.wanted_tags.clear();
        self.wanted_tags.resize(cache.block_of_tag.len());
        self.reached.clear();
        self.wanted.clear();
        self.pending.clear();
        self.tested.clear();
        self.present.clear();
    }
}
