//! Outer-join-select: the nodes that each return path selects for each bound element. A merge of the bound elements
//! with the ends of the path, both in document order.
//!
//! ```text
//! for $b in /shop/book return $b/title     bound: books 1 and 4    ends of the path: titles 3 and 6
//! lists    1 → [3]    4 → [6]              a book without titles gets an empty list (outer join)
//! ```

use std::ops::Range;

use crate::document::{Document, NodeRef};
use crate::ids::ElementId;
use crate::query::linear_path::Reach;
use crate::transform::plan::{BlockPlan, Group, Subject, TwigVariants};
use crate::transform::run::ancestors::{self, LabelledDocument};
use crate::transform::run::evaluate::{Evaluator, steps_from_bound};
use crate::transform::run::selected::{LimitExceeded, Selected};
use crate::tuning::SCAN_TEXTS;

impl Evaluator<'_> {
    /// Selects the return nodes of a block, whose elements are bound.
    pub fn select_return_nodes(&mut self, block: usize, plan: &BlockPlan) -> Result<(), LimitExceeded> {
        let bound = self.selected.block(block);
        if bound.is_empty() {
            return Ok(());
        }
        plan.groups.iter().try_for_each(|&group| {
            self.free_if_full();
            match *self.network.groups.at(group) {
                Group::Joined { join, leaf } => self.select_by_merge(join, leaf, bound.clone()),
                Group::Twig { twig } => self.select_by_twig(group, twig, bound.clone()),
            }
        })
    }

    /// Merges bound elements and ends, both in document order: the ends below a bound element are a range of their
    /// stream.
    fn select_by_merge(
        &mut self,
        join: u32,
        leaf: Option<Subject>,
        bound: Range<usize>,
    ) -> Result<(), LimitExceeded> {
        let (end, plan) = (self.network.joins.at(join).end, &self.network.join_plans[join as usize]);
        self.stream(end);
        if plan.bound_depth.is_none() && plan.reach == Reach::Unclear {
            return self.select_by_ancestors(join, leaf, bound);
        }
        let message = self.message();
        let ends = self.results.streams.at(end);
        for at in bound {
            let bound = self.selected.bound[at];
            let element = message.document.element(bound);
            let start = self.selected.nodes.len();
            for end in ends.between(bound, element.end) {
                let levels = || message.document.element(end).depth - element.depth;
                let leads_to_end = plan.bound_depth.is_some()
                    || match plan.reach {
                        Reach::Exactly(reach) => levels() == reach,
                        Reach::AtLeast(reach) => levels() >= reach,
                        Reach::Unclear => false,
                    };
                if leads_to_end {
                    push_nodes(message, leaf, end, &mut self.selected.nodes);
                }
            }
            end_list(message.document, leaf, start, self.selected, self.limit)?;
        }
        Ok(())
    }

    /// The same where the elements in between matter. Bound elements may be nested, so it goes up from each end, once
    /// for all of them.
    fn select_by_ancestors(
        &mut self,
        join: u32,
        leaf: Option<Subject>,
        bound: Range<usize>,
    ) -> Result<(), LimitExceeded> {
        let (message, steps) = (self.message(), steps_from_bound(self.network, join));
        let ends = self.results.streams.at(self.network.joins.at(join).end);
        let elements = &self.selected.bound[bound.clone()];
        let nodes_left = self.limit.saturating_sub(self.selected.nodes.len());
        let mut pairs: Vec<(usize, ElementId)> = Vec::new();
        let mut until = ElementId(0);
        for &outermost in elements {
            if outermost < until {
                continue;
            }
            until = message.document.element(outermost).end;
            for end in ends.between(outermost, until) {
                let mut has_nodes = leaf.is_none();
                if let Some(subject) = leaf {
                    for_each_leaf(message, subject, end, |_| has_nodes = true);
                }
                if has_nodes {
                    ancestors::for_each_start(message, steps, end, |start| {
                        pairs.extend(elements.binary_search(&start).ok().map(|place| (place, end)));
                    });
                }
                // Each pair selects a node at least.
                if pairs.len() > nodes_left {
                    return Err(LimitExceeded::Nodes);
                }
            }
        }
        pairs.sort_unstable();
        let mut pairs = pairs.into_iter().peekable();
        for place in 0..bound.len() {
            let start = self.selected.nodes.len();
            while let Some((_, end)) = pairs.next_if(|pair| pair.0 == place) {
                push_nodes(message, leaf, end, &mut self.selected.nodes);
            }
            end_list(message.document, leaf, start, self.selected, self.limit)?;
        }
        Ok(())
    }

    /// Evaluates a return path's twig at each bound element, or takes its cached nodes.
    fn select_by_twig(
        &mut self,
        group: u32,
        twig: TwigVariants,
        bound: Range<usize>,
    ) -> Result<(), LimitExceeded> {
        let twig = self.twigs.choose(twig, self.selected.bound[bound.clone()].iter().copied());
        // The memo of the evaluations, counted once for all of them.
        let mut memo_entries = self.document.elements.len();
        for at in bound {
            let bound = self.selected.bound[at];
            let cache = &mut self.results.twigs;
            let (start, end) = match cache.ranges.get(&(group, bound)) {
                Some(&known) => known,
                None => {
                    let start = cache.nodes.len() as u32;
                    self.twigs.verifier().select_from(twig, bound, &mut cache.nodes)?;
                    let range = (start, cache.nodes.len() as u32);
                    cache.ranges.insert((group, bound), range);
                    self.results.entries += (range.1 - start) as usize + std::mem::take(&mut memo_entries);
                    range
                }
            };
            let first = self.selected.nodes.len();
            self.selected.nodes.extend_from_slice(&cache.nodes[start as usize..end as usize]);
            self.selected.end_list(first, self.limit)?;
        }
        Ok(())
    }
}

/// Appends the nodes that a path selects at an element that it leads to.
#[inline]
fn push_nodes(
    message: LabelledDocument<'_>,
    leaf: Option<Subject>,
    end: ElementId,
    nodes: &mut Vec<NodeRef>,
) {
    match leaf {
        None => nodes.push(NodeRef::Element(end)),
        Some(subject) => for_each_leaf(message, subject, end, |leaf| nodes.push(leaf)),
    }
}

/// Calls `found` with the element itself, its text children or its attributes with a label.
#[inline]
pub(super) fn for_each_leaf(
    message: LabelledDocument<'_>,
    subject: Subject,
    element: ElementId,
    mut found: impl FnMut(NodeRef),
) {
    let document = message.document;
    match subject {
        Subject::Value => found(NodeRef::Element(element)),
        Subject::Text => for_each_child_text(document, element, |text| found(NodeRef::Text(text))),
        Subject::Attribute(label) => {
            let start = document.element(element).attributes_start;
            for (attribute, place) in document.attributes_of(element).iter().zip(start..) {
                if message.has_label(label, attribute.name) {
                    found(NodeRef::Attribute(element, place));
                }
            }
        }
    }
}

/// Ends the list of a bound element and return path.
#[inline]
fn end_list(
    document: &Document,
    leaf: Option<Subject>,
    start: usize,
    selected: &mut Selected,
    limit: usize,
) -> Result<(), LimitExceeded> {
    if leaf == Some(Subject::Text) {
        // A text of an element may come after the texts of its child elements.
        let order = |node: &NodeRef| document.order(*node);
        let nodes = &mut selected.nodes[start..];
        if !nodes.is_sorted_by_key(order) {
            nodes.sort_unstable_by_key(order);
        }
    }
    selected.end_list(start, limit)
}

/// Calls `found` with the text children of an element, in order. The element may be the end of many pairs and contain
/// many elements with texts, which are skipped.
fn for_each_child_text(document: &Document, element: ElementId, mut found: impl FnMut(u32)) {
    let within = document.element(element).texts;
    if within.end - within.start <= SCAN_TEXTS {
        let own = (within.start..within.end).filter(|&text| document.texts[text as usize].parent == element);
        return own.for_each(found);
    }
    let (mut text, mut child) = (within.start, ElementId(element.0 + 1));
    while child < document.element(element).end {
        let below = document.element(child);
        (text..below.texts.start).for_each(&mut found);
        (text, child) = (below.texts.end, below.end);
    }
    (text..within.end).for_each(found);
}
