//! The axes of XPath over all nodes of a document, attributes included.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::document::{Document, NodeRef};
use crate::ids::ElementId;
use crate::query::value::WalkAxis;

/// All nodes of a document but its attributes, by their numbers in pre-order: the descendants of a node are the
/// numbers after its own up to its end.
pub struct NodeTable {
    nodes: Vec<NodeRef>,
    parents: Vec<u32>,
    /// One past the last number of the sub-tree.
    ends: Vec<u32>,
    /// Where the envelope begins: its root is no child of the document node. The count of nodes if there is none.
    envelope: u32,
}

impl NodeTable {
    pub fn new(document: &Document) -> NodeTable {
        let (elements, texts) = document.annex_start();
        let (elements, texts) = (&document.elements[..elements], &document.texts[..texts]);
        let count = NodeTable::count_of(document);
        let mut table = NodeTable {
            nodes: vec![NodeRef::Document; count],
            parents: vec![0; count],
            ends: (1..=count as u32).collect(),
            envelope: document.envelope.map_or(count as u32, |root| document.element(root).node.0),
        };
        let number = |element: ElementId| match element.is_some() {
            true => document.element(element).node.0,
            false => 0,
        };
        for (place, element) in elements.iter().enumerate() {
            table.put(element.node.index(), NodeRef::Element(place.into()), number(element.parent));
        }
        for (place, text) in texts.iter().enumerate() {
            table.put(text.node.index(), NodeRef::Text(place as u32), number(text.parent));
        }
        for (place, other) in document.others.iter().enumerate() {
            table.put(other.node.index(), NodeRef::Other(place as u32), number(other.parent));
        }
        for number in (1..count).rev() {
            let parent = table.parents[number] as usize;
            table.ends[parent] = table.ends[parent].max(table.ends[number]);
        }
        table.ends[0] = table.envelope;
        table
    }

    /// The number of nodes that a table of a document has.
    pub fn count_of(document: &Document) -> usize {
        let (elements, texts) = document.annex_start();
        1 + elements + texts + document.others.len()
    }

    fn put(&mut self, number: usize, node: NodeRef, parent: u32) {
        self.nodes[number] = node;
        self.parents[number] = parent;
    }

    /// Calls `visit` with each node on an axis from the nodes, which are in document order. A node is visited
    /// once, except that `child`, `attribute` and `parent` may repeat it.
    pub fn for_each(
        &mut self,
        document: &Document,
        axis: WalkAxis,
        nodes: &[NodeRef],
        mut visit: impl FnMut(NodeRef),
    ) {
        let number = |node: NodeRef| document.node_id(node).0;
        match axis {
            WalkAxis::Itself => nodes.iter().copied().for_each(visit),
            WalkAxis::Child => {
                for &node in nodes.iter().filter(|node| !is_attribute(**node)) {
                    self.siblings(number(node) + 1, self.end(number(node)), &mut visit);
                }
            }
            WalkAxis::Descendant | WalkAxis::DescendantOrSelf => {
                let mut covered = 0;
                for &node in nodes {
                    if is_attribute(node) {
                        if axis == WalkAxis::DescendantOrSelf {
                            visit(node);
                        }
                        continue;
                    }
                    let own = number(node);
                    let first = own + u32::from(axis == WalkAxis::Descendant);
                    self.range(first.max(covered), self.end(own), &mut visit);
                    covered = covered.max(self.end(own));
                }
            }
            WalkAxis::Attribute => {
                for &node in nodes {
                    if let NodeRef::Element(element) = node {
                        let first = document.element(element).attributes_start;
                        let count = document.attributes_of(element).len() as u32;
                        (first..first + count).for_each(|place| visit(NodeRef::Attribute(element, place)));
                    }
                }
            }
            WalkAxis::Parent => {
                nodes
                    .iter()
                    .filter_map(|&node| self.parent(document, node))
                    .for_each(|at| visit(self.node(at)));
            }
            WalkAxis::Ancestor | WalkAxis::AncestorOrSelf => {
                let mut visited = FxHashSet::default();
                for &node in nodes {
                    if axis == WalkAxis::AncestorOrSelf
                        && (is_attribute(node) || visited.insert(number(node)))
                    {
                        visit(node);
                    }
                    let mut above = self.parent(document, node);
                    while let Some(at) = above
                        && visited.insert(at)
                    {
                        visit(self.node(at));
                        above = self.parent_of(at);
                    }
                }
            }
            WalkAxis::Following => {
                let after = |&node: &NodeRef| match is_attribute(node) {
                    true => number(node) + 1,
                    false => self.end(number(node)),
                };
                for (nodes, tree) in self.by_tree(document, nodes) {
                    if let Some(first) = nodes.iter().map(after).min() {
                        self.range(first, tree.end, &mut visit);
                    }
                }
            }
            WalkAxis::Preceding => {
                for (nodes, tree) in self.by_tree(document, nodes) {
                    let last = nodes.last().map_or(0, |&node| number(node));
                    for at in (tree.start + 1..last).filter(|&at| self.end(at) <= last) {
                        visit(self.node(at));
                    }
                }
            }
            WalkAxis::FollowingSibling => {
                let mut parents = FxHashSet::default();
                for &node in nodes.iter().filter(|node| !is_attribute(**node)) {
                    if let Some(parent) = self.parent(document, node)
                        && parents.insert(parent)
                    {
                        self.siblings(self.end(number(node)), self.end(parent), &mut visit);
                    }
                }
            }
            WalkAxis::PrecedingSibling => {
                let mut parents = FxHashSet::default();
                for &node in nodes.iter().rev().filter(|node| !is_attribute(**node)) {
                    if let Some(parent) = self.parent(document, node)
                        && parents.insert(parent)
                    {
                        self.siblings(parent + 1, number(node), &mut visit);
                    }
                }
            }
        }
    }

    /// Calls `visit` with each node on an axis from one node, in the order in which positions count them, for as long as
    /// it is true.
    pub fn for_each_in_order(
        &self,
        document: &Document,
        axis: WalkAxis,
        node: NodeRef,
        mut visit: impl FnMut(NodeRef) -> bool,
    ) {
        let number = document.node_id(node).0;
        let parent = self.parent(document, node);
        let all = |range: std::ops::Range<u32>, visit: &mut dyn FnMut(NodeRef) -> bool| {
            let _ = range.map(|at| self.node(at)).all(visit);
        };
        match axis {
            WalkAxis::Itself => _ = visit(node),
            WalkAxis::Parent => _ = parent.is_some_and(|parent| visit(self.node(parent))),
            WalkAxis::Ancestor | WalkAxis::AncestorOrSelf => {
                let goes_on = axis == WalkAxis::Ancestor || visit(node);
                let mut above = parent.filter(|_| goes_on);
                while let Some(at) = above
                    && visit(self.node(at))
                {
                    above = self.parent_of(at);
                }
            }
            WalkAxis::Attribute => {
                if let NodeRef::Element(element) = node {
                    let first = document.element(element).attributes_start;
                    let count = document.attributes_of(element).len() as u32;
                    let _ = (first..first + count).all(|place| visit(NodeRef::Attribute(element, place)));
                }
            }
            WalkAxis::Following if is_attribute(node) => all(number + 1..self.tree(number).end, &mut visit),
            WalkAxis::Following => all(self.end(number)..self.tree(number).end, &mut visit),
            WalkAxis::Preceding => {
                let before = (self.tree(number).start + 1..number).rev().filter(|&at| self.end(at) <= number);
                let _ = before.map(|at| self.node(at)).all(visit);
            }
            WalkAxis::DescendantOrSelf if is_attribute(node) => _ = visit(node),
            _ if is_attribute(node) => {}
            WalkAxis::Descendant => all(number + 1..self.end(number), &mut visit),
            WalkAxis::DescendantOrSelf => all(number..self.end(number), &mut visit),
            WalkAxis::Child => self.siblings_while(number + 1, self.end(number), &mut visit),
            WalkAxis::FollowingSibling => {
                if let Some(parent) = parent {
                    self.siblings_while(self.end(number), self.end(parent), &mut visit);
                }
            }
            WalkAxis::PrecedingSibling => {
                let Some(parent) = parent else { return };
                let mut last = number;
                while last > parent + 1 {
                    last -= 1;
                    while self.parents[last as usize] != parent {
                        last = self.parents[last as usize];
                    }
                    if !visit(self.node(last)) {
                        return;
                    }
                }
            }
        }
    }

    /// The number of nodes.
    pub fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub fn node(&self, number: u32) -> NodeRef {
        self.nodes[number as usize]
    }

    pub fn end(&self, number: u32) -> u32 {
        self.ends[number as usize]
    }

    /// The number of a node's parent; the parent of an attribute is its element.
    fn parent(&self, document: &Document, node: NodeRef) -> Option<u32> {
        let number = document.node_id(node).0;
        match node {
            NodeRef::Document => None,
            NodeRef::Attribute(..) => Some(number),
            _ => self.parent_of(number),
        }
    }

    /// The number of the parent of a node, by its number. The document node and the envelope's root have none.
    fn parent_of(&self, number: u32) -> Option<u32> {
        (number > 0 && number != self.envelope).then(|| self.parents[number as usize])
    }

    /// One past the last node of the message.
    pub fn message_end(&self) -> u32 {
        self.envelope
    }

    /// The numbers of the message, or of the envelope, whichever a node is of.
    fn tree(&self, number: u32) -> Range<u32> {
        if number < self.envelope { 0..self.envelope } else { self.envelope..self.count() }
    }

    /// Nodes in document order as those of the message and those of the envelope, with the numbers of these trees.
    fn by_tree<'n>(&self, document: &Document, nodes: &'n [NodeRef]) -> [(&'n [NodeRef], Range<u32>); 2] {
        let of_message = nodes.partition_point(|&node| document.node_id(node).0 < self.envelope);
        let (message, envelope) = nodes.split_at(of_message);
        [(message, 0..self.envelope), (envelope, self.envelope..self.nodes.len() as u32)]
    }

    fn range(&self, first: u32, end: u32, visit: &mut impl FnMut(NodeRef)) {
        (first..end).for_each(|at| visit(self.node(at)));
    }

    /// The number of the parent of a node that is no attribute; of the document node, its own.
    pub fn parent_number(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// Siblings from the first number on, for as long as `visit` is true.
    fn siblings_while(&self, first: u32, end: u32, visit: &mut impl FnMut(NodeRef) -> bool) {
        let mut next = first;
        while next < end && visit(self.node(next)) {
            next = self.end(next);
        }
    }

    /// Siblings from the first number on.
    fn siblings(&self, first: u32, end: u32, visit: &mut impl FnMut(NodeRef)) {
        let mut next = first;
        while next < end {
            visit(self.node(next));
            next = self.end(next);
        }
    }
}

fn is_attribute(node: NodeRef) -> bool {
    matches!(node, NodeRef::Attribute(..))
}
