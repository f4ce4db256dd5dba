//! Findings straight from the automaton, element by element, remembering nothing.

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::automaton::names::Names;
use crate::matching::findings::{Findings, Ranks};
use crate::query::number::number;
use crate::segment::format::columns::View;
use crate::segment::format::entries::{
    ENTRY_NUMBER, ENTRY_TEXT, SUBJECT_POSITION, SUBJECT_POSITION_ANY, SUBJECT_TEXT, SUBJECT_VALUE,
};
use crate::segment::format::{ANY, NONE};

/// What the open elements bind: for each, a stretch of `nodes`.
#[derive(Default)]
pub struct Nfa {
    nodes: Vec<u32>,
    /// Those among them with children by `//`, each once: a recursive message binds a node at several
    /// depths, and its children count once.
    loops: Vec<u32>,
    /// Per node, whether it is among them.
    is_loop: Vec<bool>,
    open: Vec<Open>,
    bound: Vec<u32>,
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
        root: u32,
        document: &Document,
        names: &Names,
        ranks: &mut Ranks,
        findings: &mut Findings,
    ) {
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
            let parent_start = self.open.last().map_or(0, |open| open.nodes);
            for &node in &self.nodes[parent_start..] {
                view.push_children(node, labels, &mut self.bound);
            }
            for &node in &self.loops {
                view.push_descendants(node, labels, &mut self.bound);
            }
            for &node in &self.bound {
                let condition = view.node_condition[node as usize];
                if condition != NONE {
                    findings.conditions.set(condition);
                }
                let anchor = view.anchor(node);
                if anchor != NONE {
                    findings.bind_anchor(anchor);
                }
                for entry in view.entries(node) {
                    look(view, (node, entry), id, document, names, ranks, findings);
                }
            }
            let start = self.nodes.len();
            self.open.push(Open { element: id, nodes: start, loops: self.loops.len() });
            self.nodes.extend(&self.bound);
            self.add_loops(view, start);
        }
        self.drop_loops(0);
    }

    /// Adds the nodes from a place on that are loops and not known as such.
    fn add_loops(&mut self, view: View<'_>, start: usize) {
        for &node in &self.nodes[start..] {
            if view.has_descendants(node) && !self.is_loop[node as usize] {
                self.is_loop[node as usize] = true;
                self.loops.push(node);
            }
        }
    }

    /// Forgets the loops from a place on.
    fn drop_loops(&mut self, start: usize) {
        self.loops.drain(start..).for_each(|node| self.is_loop[node as usize] = false);
    }
}

/// Looks at an entry's subject below an element.
fn look(
    view: View<'_>,
    (node, entry): (u32, usize),
    element: ElementId,
    document: &Document,
    names: &Names,
    ranks: &mut Ranks,
    findings: &mut Findings,
) {
    let mut value = |bytes: &[u8]| test(view, node, entry, bytes, findings);
    match view.entry_subject[entry] {
        SUBJECT_TEXT => document.texts_of(element).for_each(|text| value(text.content.of(&document.text))),
        SUBJECT_VALUE => value(document.string_value(element)),
        SUBJECT_POSITION => value(ranks.of(document, element).named.to_string().as_bytes()),
        SUBJECT_POSITION_ANY => value(ranks.of(document, element).any.to_string().as_bytes()),
        label => {
            for attribute in document.attributes_of(element) {
                let labels = names.of(attribute.name);
                if label == ANY || label == labels.name || label == labels.namespace {
                    value(document.value(attribute));
                }
            }
        }
    }
}

/// Tests one value of an entry's subject.
fn test(view: View<'_>, node: u32, entry: usize, value: &[u8], findings: &mut Findings) {
    let exists = view.entry_exists[entry];
    if exists != NONE {
        findings.conditions.set(exists);
    }
    let flags = view.entry_flags[entry];
    let slot = view.entry_slot[entry];
    let text = if flags & ENTRY_TEXT != 0 { view.text_constant(value) } else { NONE };
    let numeric = if flags & ENTRY_NUMBER != 0 { view.number_constant(number(value)) } else { NONE };
    for constant in [text, numeric] {
        if constant != NONE {
            let condition = view.equal_condition(node, entry as u32, constant);
            if condition != NONE {
                findings.conditions.set(condition);
            }
        }
    }
    for &[constant, condition] in view.unequal(entry) {
        if constant != text && constant != numeric {
            findings.conditions.set(condition);
        }
    }
    if slot != NONE {
        findings.gather(slot, number(value));
    }
    if !view.bounds(entry).is_empty() {
        let passed = view.passed_bounds(entry, number(value));
        passed.for_each(|condition| findings.conditions.set(condition));
    }
}
