//! The subset construction, one transition at a time: computes the states that a message reaches first.
//!
//! The children of an element by a label are those of its accept set by `/` and those of its loops by `//`. Many
//! states have the same loops, so what loops lead to is cached by itself (`loop_steps`).

use super::Search;
use super::cache::{Accept, CacheFull, NOT_REACHED, PoolRange, Reached, State};
use super::probes::entry_key;
use crate::document::Element;
use crate::matching::automaton::masks::MaskList;
use crate::matching::automaton::node_sets::{hash_set, partition, same_set};
use crate::query::ast::Axis;
use crate::segment::format::trie::NameLabels;
use crate::tuning::{PREFETCH_DISTANCE, TAG_PATH_FRACTION};

impl Search<'_> {
    /// The state of the document node.
    pub(super) fn start(&mut self) -> u32 {
        let (view, root) = (self.dfa.view, self.dfa.root);
        if let Some(&state) = self.cache.starts.get(&root) {
            return state;
        }
        self.scratch.nodes.clear();
        self.scratch.nodes.push(root);
        let accept = self.accept();
        self.scratch.nodes.retain(|&node| view.has_descendants(node));
        let loops = self.loops();
        let state = self.state(accept, loops);
        self.cache.starts.insert(root, state);
        state
    }

    /// The state that an element reaches: by a cached transition from the state of its parent, or by a new one.
    #[cold]
    pub(super) fn reach(&mut self, element: &Element) -> Result<Reached, CacheFull> {
        let above = match element.parent.is_none() {
            true => self.cache.last_start,
            false => self.scratch.reached[element.parent.index()].state,
        };
        let labels = self.dfa.names.of(element.name);
        if element.parent.is_none() && element.node != self.document.elements[0].node {
            self.cache.check_room()?;
            let state = self.beside(labels);
            return Ok(self.remember(element, state));
        }
        let key = (above as u64) << 32 | labels.transition_key as u64;
        let state = match self.cache.transitions.get(&key) {
            Some(&state) => state,
            None => {
                self.cache.check_room()?;
                let state = self.step(above, labels);
                self.cache.transitions.insert(key, state);
                state
            }
        };
        Ok(self.remember(element, state))
    }

    /// What a root beside the message reaches: nothing but a step with its own name leads there.
    fn beside(&mut self, labels: NameLabels) -> u32 {
        let view = self.dfa.view;
        self.scratch.nodes.clear();
        self.scratch.nodes.extend(view.child(self.dfa.root, Axis::Child, labels.name));
        let accept = self.accept();
        self.scratch.nodes.retain(|&node| view.has_descendants(node));
        let loops = self.loops();
        self.state(accept, loops)
    }

    /// Remembers the state of an element by its tag path.
    fn remember(&mut self, element: &Element, state: u32) -> Reached {
        let accept = self.cache.states[state as usize].accept;
        let is_probed = self.cache.accepts[accept as usize].probes.len > 0;
        let reached = Reached { state, accept, is_probed };
        let by_tag_path = &mut self.cache.by_tag_path;
        let tag_path = element.tag_path.index();
        if tag_path < self.cache.capacity / TAG_PATH_FRACTION / size_of::<Reached>() {
            by_tag_path.resize(by_tag_path.len().max(tag_path + 1), NOT_REACHED);
            by_tag_path[tag_path] = reached;
        }
        reached
    }

    /// The state of a child with these labels of an element in state `above`.
    #[cold]
    fn step(&mut self, above: u32, labels: NameLabels) -> u32 {
        let view = self.dfa.view;
        let State { accept, loops } = self.cache.states[above as usize];
        let descendants = self.loop_step(loops, labels);
        self.scratch.nodes.clear();
        self.scratch.nodes.extend_from_slice(descendants.of(&self.cache.nodes));
        let Accept { nodes, inner, .. } = self.cache.accepts[accept as usize];
        let inner = PoolRange { len: inner, ..nodes }.of(&self.cache.nodes);
        for (at, &node) in inner.iter().enumerate() {
            inner.get(at + PREFETCH_DISTANCE).into_iter().for_each(|&later| view.prefetch_children(later));
            view.push_children(node, labels, &mut self.scratch.nodes);
        }
        let accept = self.accept();
        // Loops grow by the nodes that were not there before.
        let before = self.cache.loops[loops as usize];
        self.scratch.marks.clear();
        for &node in before.of(&self.cache.nodes) {
            self.scratch.marks.insert(node.0);
        }
        let marks = &self.scratch.marks;
        self.scratch.nodes.retain(|&node| view.has_descendants(node) && !marks.contains(node.0));
        let loops = if self.scratch.nodes.is_empty() {
            loops
        } else {
            self.scratch.nodes.extend_from_slice(before.of(&self.cache.nodes));
            self.loops()
        };
        self.state(accept, loops)
    }

    /// The nodes that a set of loops leads to by these labels.
    fn loop_step(&mut self, loops: u32, labels: NameLabels) -> PoolRange {
        let view = self.dfa.view;
        let key = (loops as u64) << 32 | labels.transition_key as u64;
        if let Some(&nodes) = self.cache.loop_steps.get(&key) {
            return nodes;
        }
        self.scratch.nodes.clear();
        let loops = self.cache.loops[loops as usize].of(&self.cache.nodes);
        for (at, &node) in loops.iter().enumerate() {
            loops.get(at + PREFETCH_DISTANCE).into_iter().for_each(|&later| view.prefetch_children(later));
            view.push_descendants(node, labels, &mut self.scratch.nodes);
        }
        let nodes = self.store_nodes();
        self.cache.loop_steps.insert(key, nodes);
        nodes
    }

    fn store_nodes(&mut self) -> PoolRange {
        self.dfa.view.assert_node_set(&self.scratch.nodes);
        let start = self.cache.nodes.len() as u32;
        self.cache.nodes.extend_from_slice(&self.scratch.nodes);
        PoolRange { start, len: self.scratch.nodes.len() as u32 }
    }

    fn state(&mut self, accept: u32, loops: u32) -> u32 {
        let states = &mut self.cache.states;
        *self.cache.state_ids.entry((accept as u64) << 32 | loops as u64).or_insert_with(|| {
            states.push(State { accept, loops });
            states.len() as u32 - 1
        })
    }

    /// The number of the set of loops in `scratch.nodes`.
    fn loops(&mut self) -> u32 {
        let hash = hash_set(&self.scratch.nodes);
        let candidates = self.cache.loop_ids.entry(hash).or_default();
        for &loops in candidates.iter() {
            let stored = self.cache.loops[loops as usize].of(&self.cache.nodes);
            if same_set(stored, &self.scratch.nodes, &mut self.scratch.marks) {
                return loops;
            }
        }
        let id = self.cache.loops.len() as u32;
        candidates.push(id);
        let nodes = self.store_nodes();
        self.cache.loops.push(nodes);
        id
    }

    /// The number of the accept set in `scratch.nodes`.
    fn accept(&mut self) -> u32 {
        let view = self.dfa.view;
        let hash = hash_set(&self.scratch.nodes);
        let candidates = self.cache.accept_ids.entry(hash).or_default();
        for &accept in candidates.iter() {
            let stored = self.cache.accepts[accept as usize].nodes.of(&self.cache.nodes);
            if same_set(stored, &self.scratch.nodes, &mut self.scratch.marks) {
                return accept;
            }
        }
        let id = self.cache.accepts.len() as u32;
        candidates.push(id);
        let inner = partition(&mut self.scratch.nodes, |node| view.has_children(node)) as u32;
        let nodes = self.store_nodes();
        let mut entries = Vec::new();
        for (at, &node) in self.scratch.nodes.iter().enumerate() {
            self.scratch
                .nodes
                .get(at + PREFETCH_DISTANCE)
                .into_iter()
                .for_each(|&later| view.prefetch_node(later));
            let condition = view.node_condition[node.index()];
            if condition.is_some() {
                self.scratch.conditions.set(condition.0);
            }
            let anchor = view.anchor(node);
            if anchor.is_some() {
                self.scratch.anchors.set(anchor.0);
            }
            let label = view.node_label[node.index()];
            entries
                .extend(view.entries(node).map(|entry| entry_key(view.entry_subject[entry], label, entry)));
            // No two nodes have an entry in common.
            assert!(entries.len() <= view.entry_subject.len(), "the segment is damaged");
        }
        let conditions = self.store_conditions();
        let anchors = self.cache.masks.store(&mut self.scratch.anchors);
        let probes = self.add_probes(entries);
        let subjects = &self.cache.subjects[probes.start as usize..];
        let attributes = subjects.partition_point(|subject| subject.of.is_attribute()) as u32;
        self.cache.accepts.push(Accept { nodes, inner, conditions, anchors, probes, attributes });
        self.scratch.visits.resize(self.cache.accepts.len());
        id
    }

    /// Stores the conditions in `scratch.conditions`, tagged with the block of their rows.
    pub(super) fn store_conditions(&mut self) -> MaskList {
        let list = self.cache.masks.store(&mut self.scratch.conditions);
        let masks = self.cache.masks.get(list).iter();
        let block =
            self.cache.blocks.store(self.dfa.view, masks.map(|mask| (mask.word as usize, mask.bits())));
        if !block.is_empty() {
            self.cache.masks.tag(list, self.cache.block_of_tag.len() as u32);
            self.cache.block_of_tag.push(block);
            self.scratch.wanted_tags.resize(self.cache.block_of_tag.len());
        }
        list
    }
}
