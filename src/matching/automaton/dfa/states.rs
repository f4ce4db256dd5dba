//! What the automaton says, taken into the cache: states, and what is found at elements in them.

use super::values::of_entry;
use super::{Accept, Dfa, Full, NOT_REACHED, Reached, State, Stretch, slice};
use crate::document::Element;
use crate::matching::automaton::masks::MaskList;
use crate::matching::automaton::names::Names;
use crate::matching::automaton::node_sets::{hash_set, partition, same_set};
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::segment::format::entries::SUBJECT_POSITION_ANY;
use crate::segment::format::trie::NameLabels;
use crate::tuning::{PREFETCH_DISTANCE, TAG_PATH_FRACTION};

impl Dfa {
    /// The state of the document node.
    pub(super) fn start(&mut self, view: View<'_>, root: u32) -> u32 {
        if let Some(&state) = self.starts.get(&root) {
            return state;
        }
        self.nodes.clear();
        self.nodes.push(root);
        let accept = self.accept(view);
        self.nodes.retain(|&node| view.has_descendants(node));
        let loops = self.loops();
        let state = self.state(accept, loops);
        self.starts.insert(root, state);
        state
    }

    /// What an element reaches whose parent has reached something.
    #[cold]
    pub(super) fn reach(
        &mut self,
        view: View<'_>,
        element: &Element,
        names: &Names,
        capacity: usize,
    ) -> Result<Reached, Full> {
        let above = match element.parent.is_none() {
            true => self.last_start,
            false => self.path[element.parent.index()].state,
        };
        let labels = names.of(element.name);
        let key = (above as u64) << 32 | labels.transition_key() as u64;
        let state = match self.transitions.get(&key) {
            Some(&state) => state,
            None => {
                if self.bytes() > capacity {
                    return Err(Full);
                }
                let state = self.step(view, above, labels);
                self.transitions.insert(key, state);
                state
            }
        };
        let accept = self.states[state as usize].accept;
        let is_probed = self.accepts[accept as usize].probes.len > 0;
        let reached = Reached { state, accept, is_probed };
        let place = element.tag_path.index();
        if place < capacity / TAG_PATH_FRACTION / size_of::<Reached>() {
            self.reached.resize(self.reached.len().max(place + 1), NOT_REACHED);
            self.reached[place] = reached;
        }
        Ok(reached)
    }

    /// The state of a child called so of an element in state `above`.
    #[cold]
    fn step(&mut self, view: View<'_>, above: u32, labels: NameLabels) -> u32 {
        let State { accept, loops } = self.states[above as usize];
        let descendants = self.loop_step(view, loops, labels);
        self.nodes.clear();
        self.nodes.extend_from_slice(slice(&self.sets, descendants));
        let Accept { nodes, inner, .. } = self.accepts[accept as usize];
        let inner = slice(&self.sets, Stretch { len: inner, ..nodes });
        for (at, &node) in inner.iter().enumerate() {
            inner.get(at + PREFETCH_DISTANCE).into_iter().for_each(|&later| view.prefetch_children(later));
            view.push_children(node, labels, &mut self.nodes);
        }
        let accept = self.accept(view);
        // Loops grow by the nodes that were not there before.
        let before = self.loops[loops as usize];
        self.marks.clear();
        for &node in slice(&self.sets, before) {
            self.marks.insert(node);
        }
        let marks = &self.marks;
        self.nodes.retain(|&node| view.has_descendants(node) && !marks.contains(node));
        let loops = if self.nodes.is_empty() {
            loops
        } else {
            self.nodes.extend_from_slice(slice(&self.sets, before));
            self.loops()
        };
        self.state(accept, loops)
    }

    /// The nodes that a set of loops leads to by a name: shared by all states with these loops.
    fn loop_step(&mut self, view: View<'_>, loops: u32, labels: NameLabels) -> Stretch {
        let key = (loops as u64) << 32 | labels.transition_key() as u64;
        if let Some(&stretch) = self.loop_steps.get(&key) {
            return stretch;
        }
        self.nodes.clear();
        let loops = slice(&self.sets, self.loops[loops as usize]);
        for (at, &node) in loops.iter().enumerate() {
            loops.get(at + PREFETCH_DISTANCE).into_iter().for_each(|&later| view.prefetch_children(later));
            view.push_descendants(node, labels, &mut self.nodes);
        }
        let stretch = self.store_nodes();
        self.loop_steps.insert(key, stretch);
        stretch
    }

    fn store_nodes(&mut self) -> Stretch {
        let start = self.sets.len() as u32;
        self.sets.extend_from_slice(&self.nodes);
        Stretch { start, len: self.nodes.len() as u32 }
    }

    fn state(&mut self, accept: u32, loops: u32) -> u32 {
        let states = &mut self.states;
        *self.state_ids.entry((accept as u64) << 32 | loops as u64).or_insert_with(|| {
            states.push(State { accept, loops });
            states.len() as u32 - 1
        })
    }

    /// The set of loops that `nodes` holds.
    fn loops(&mut self) -> u32 {
        let hash = hash_set(&self.nodes);
        let candidates = self.loop_ids.entry(hash).or_default();
        for &loops in candidates.iter() {
            let known = slice(&self.sets, self.loops[loops as usize]);
            if same_set(known, &self.nodes, &mut self.marks) {
                return loops;
            }
        }
        let id = self.loops.len() as u32;
        candidates.push(id);
        let stretch = self.store_nodes();
        self.loops.push(stretch);
        id
    }

    /// The accept set that `nodes` holds.
    fn accept(&mut self, view: View<'_>) -> u32 {
        let hash = hash_set(&self.nodes);
        let candidates = self.accept_ids.entry(hash).or_default();
        for &accept in candidates.iter() {
            let known = slice(&self.sets, self.accepts[accept as usize].nodes);
            if same_set(known, &self.nodes, &mut self.marks) {
                return accept;
            }
        }
        let id = self.accepts.len() as u32;
        candidates.push(id);
        let inner = partition(&mut self.nodes, |node| view.has_children(node)) as u32;
        let nodes = self.store_nodes();
        let mut entries = Vec::new();
        for (at, &node) in self.nodes.iter().enumerate() {
            self.nodes.get(at + PREFETCH_DISTANCE).into_iter().for_each(|&later| view.prefetch_node(later));
            let condition = view.node_condition[node as usize];
            if condition != NONE {
                self.conditions.set(condition);
            }
            let anchor = view.anchor(node);
            if anchor != NONE {
                self.anchors.set(anchor);
            }
            let label = view.node_label[node as usize];
            entries.extend(view.entries(node).map(|entry| of_entry(view.entry_subject[entry], label, entry)));
        }
        let conditions = self.store_conditions(view);
        let anchors = self.masks.store(&mut self.anchors);
        let probes = self.probes(view, entries);
        let subjects = &self.subjects[probes.start as usize..];
        let attributes = subjects.partition_point(|subject| subject.of < SUBJECT_POSITION_ANY) as u32;
        self.accepts.push(Accept { nodes, inner, conditions, anchors, probes, attributes });
        self.visits.resize(self.accepts.len());
        id
    }

    /// Stores what `conditions` holds, tagged with the block of its rows.
    pub(super) fn store_conditions(&mut self, view: View<'_>) -> MaskList {
        let list = self.masks.store(&mut self.conditions);
        let masks = self.masks.get(list).iter();
        let block = self.blocks.store(view, masks.map(|mask| (mask.word as usize, mask.bits())));
        if !block.is_empty() {
            self.masks.tag(list, self.tagged.len() as u32);
            self.tagged.push(block);
            self.given.resize(self.tagged.len());
        }
        list
    }
}
