//! The automaton as an NFA: keeps the set of active trie nodes for each open element. No cache, so it needs little
//! memory. Used if the DFA's cache has no room, and as the reference for the DFA. Cost: elements × active nodes.

use crate::document::Document;
use crate::ids::{ElementId, LabelId, SubjectId, TrieNodeId};
use crate::matching::automaton::names::Names;
use crate::matching::findings::{Findings, Ranks};
use crate::query::ast::Axis;
use crate::query::number::number;
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::segment::format::constants::UnequalTest;
use crate::segment::format::entries::{ENTRY_NORMALIZED, ENTRY_NUMBER, ENTRY_TEXT};

/// The trie nodes that the open elements bind: for each element a range of `nodes`.
#[derive(Default)]
pub struct Nfa {
    nodes: Vec<TrieNodeId>,
    /// The bound nodes with children by `//`, each once: a recursive message binds a node at several
    /// depths, and its children count once.
    loops: Vec<TrieNodeId>,
    /// Per node, whether it is among them.
    is_loop: Vec<bool>,
    open: Vec<Open>,
    bound: Vec<TrieNodeId>,
}

/// An open element, and how many nodes and loops there were before it.
struct Open {
    element: ElementId,
    nodes: usize,
    loops: usize,
}

impl Nfa {
    /// Matches a document from the root of a tenant.
    pub fn find(
        &mut self,
        view: View<'_>,
        root: TrieNodeId,
        document: &Document,
        names: &Names,
        ranks: &mut Ranks,
        findings: &mut Findings,
    ) {
        ranks.enter_segment();
        self.nodes.clear();
        self.open.clear();
        self.is_loop.resize(self.is_loop.len().max(view.node_label.len()), false);
        self.nodes.push(root);
        self.add_loops(view, 0);
        for (index, element) in document.elements.iter().enumerate() {
            let id = ElementId::from(index);
            while let Some(open) = self.open.pop_if(|open| open.element != element.parent) {
                self.nodes.truncate(open.nodes);
                self.drop_loops(open.loops);
            }
            let labels = names.of(element.name);
            self.bound.clear();
            if element.parent.is_none() && index > 0 {
                // Nothing leads there but a step with its own name.
                self.nodes.clear();
                self.drop_loops(0);
                self.bound.extend(view.child(root, Axis::Child, labels.name));
            }
            let parent_start = self.open.last().map_or(0, |open| open.nodes);
            for &node in &self.nodes[parent_start..] {
                view.push_children(node, labels, &mut self.bound);
            }
            for &node in &self.loops {
                view.push_descendants(node, labels, &mut self.bound);
            }
            view.assert_node_set(&self.bound);
            for &node in &self.bound {
                let condition = view.node_condition[node.index()];
                if condition.is_some() {
                    findings.conditions.set(condition.0);
                }
                let anchor = view.anchor(node);
                if anchor.is_some() {
                    findings.bind_anchor(anchor);
                }
                for entry in view.entries(node) {
                    test_subject(view, (node, entry), id, document, names, ranks, findings);
                }
            }
            let start = self.nodes.len();
            self.open.push(Open { element: id, nodes: start, loops: self.loops.len() });
            self.nodes.extend(&self.bound);
            self.add_loops(view, start);
        }
        self.drop_loops(0);
    }

    /// Adds the nodes from position `start` on that are loops and not in `loops` yet.
    fn add_loops(&mut self, view: View<'_>, start: usize) {
        for &node in &self.nodes[start..] {
            if view.has_descendants(node) && !self.is_loop[node.index()] {
                self.is_loop[node.index()] = true;
                self.loops.push(node);
            }
        }
    }

    /// Removes the loops from position `start` on.
    fn drop_loops(&mut self, start: usize) {
        self.loops.drain(start..).for_each(|node| self.is_loop[node.index()] = false);
    }
}

/// Tests an entry's subject below an element.
fn test_subject(
    view: View<'_>,
    (node, entry): (TrieNodeId, usize),
    element: ElementId,
    document: &Document,
    names: &Names,
    ranks: &mut Ranks,
    findings: &mut Findings,
) {
    let mut value = |bytes: &[u8]| test(view, node, entry, bytes, findings);
    match view.entry_subject[entry] {
        SubjectId::TEXT => document.texts_of(element).for_each(|text| value(text.content.of(&document.text))),
        SubjectId::VALUE => value(document.string_value(element)),
        SubjectId::POSITION => value(ranks.of(document, element).named.to_string().as_bytes()),
        SubjectId::POSITION_ANY => value(ranks.of(document, element).any.to_string().as_bytes()),
        SubjectId::POSITION_LOCAL => {
            value(ranks.of_labels(document, names, element).local.to_string().as_bytes());
        }
        SubjectId::POSITION_NAMESPACE => {
            value(ranks.of_labels(document, names, element).namespace.to_string().as_bytes());
        }
        attribute => {
            let label = LabelId(attribute.0);
            for attribute in document.attributes_of(element) {
                if names.of(attribute.name).pass(label) {
                    value(document.value(attribute));
                }
            }
        }
    }
}

/// Tests one value of an entry's subject.
fn test(view: View<'_>, node: TrieNodeId, entry: usize, value: &[u8], findings: &mut Findings) {
    let exists = view.entry_exists[entry];
    if exists.is_some() {
        findings.conditions.set(exists.0);
    }
    let flags = view.entry_flags[entry];
    let slot = view.entry_slot[entry];
    let text = if flags & ENTRY_TEXT != 0 { view.text_constant(value) } else { NONE };
    let numeric = if flags & ENTRY_NUMBER != 0 { view.number_constant(number(value)) } else { NONE };
    let normalized = if flags & ENTRY_NORMALIZED != 0 { view.normalized_constant(value) } else { NONE };
    for constant in [text, numeric, normalized] {
        if constant != NONE {
            let condition = view.equal_condition(node, entry as u32, constant);
            if condition.is_some() {
                findings.conditions.set(condition.0);
            }
        }
    }
    for &UnequalTest { constant, condition } in view.unequal(entry) {
        if constant != text && constant != numeric {
            findings.conditions.set(condition.0);
        }
    }
    if slot != NONE {
        findings.add_number(slot, number(value));
    }
    if !view.bounds(entry).is_empty() {
        let passed = view.passed_bounds(entry, number(value));
        passed.for_each(|condition| findings.conditions.set(condition.0));
    }
}
