//! Bindings and groups → nodes: what each return path takes for each bound element.

use std::ops::Range;

use crate::document::{Document, NodeRef};
use crate::ids::ElementId;
use crate::query::decompose::Reach;
use crate::transform::plan::{BlockPlan, Group, Subject, TwigVariants};
use crate::transform::run::ancestors::{self, LabelledDocument};
use crate::transform::run::evaluate::{Evaluator, rest};
use crate::transform::run::selected::{LimitExceeded, Selected};
use crate::tuning::SCAN_TEXTS;

impl Evaluator<'_> {
    /// Takes the nodes of a block, told by its place among those that are bound: an outer join of its bindings
    /// with its groups.
    pub fn select(&mut self, block: usize, plan: &BlockPlan) -> Result<(), LimitExceeded> {
        let bound = self.taken.block(block);
        if bound.is_empty() {
            return Ok(());
        }
        plan.groups.iter().try_for_each(|&group| {
            self.forget_if_full();
            match *self.network.groups.at(group) {
                Group::Joined { join, leaf } => self.take(join, leaf, bound.clone()),
                Group::Twig { twig } => self.search(group, twig, bound.clone()),
            }
        })
    }

    /// Takes a group's nodes for each bound element. What is bound and what is found both ascend, so one walk
    /// over each joins them: below a bound element lies a stretch of the stream.
    fn take(&mut self, join: u32, leaf: Option<Subject>, bound: Range<usize>) -> Result<(), LimitExceeded> {
        let (end, plan) = (self.network.joins.at(join).end, &self.network.join_plans[join as usize]);
        self.stream(end);
        if plan.depth.is_none() && plan.reach == Reach::Unclear {
            return self.take_by_climbing(join, leaf, bound);
        }
        let ground = self.ground();
        let ends = self.results.streams.at(end);
        for at in bound {
            let bound = self.taken.bound[at];
            let element = ground.document.element(bound);
            let start = self.taken.nodes.len();
            for end in ends.between(bound, element.end) {
                let levels = || ground.document.element(end).depth - element.depth;
                let leads = plan.depth.is_some()
                    || match plan.reach {
                        Reach::Exactly(reach) => levels() == reach,
                        Reach::AtLeast(reach) => levels() >= reach,
                        Reach::Unclear => false,
                    };
                if leads {
                    take_at(ground, leaf, end, &mut self.taken.nodes);
                }
            }
            end_list(ground.document, leaf, start, self.taken, self.limit)?;
        }
        Ok(())
    }

    /// The same where elements in between matter. BindingSource elements may lie in one another, so it is from what is
    /// found that the ways go up, once to all of them.
    fn take_by_climbing(
        &mut self,
        join: u32,
        leaf: Option<Subject>,
        bound: Range<usize>,
    ) -> Result<(), LimitExceeded> {
        let (ground, steps) = (self.ground(), rest(self.network, join));
        let ends = self.results.streams.at(self.network.joins.at(join).end);
        let elements = &self.taken.bound[bound.clone()];
        let room = self.limit.saturating_sub(self.taken.nodes.len());
        let mut pairs: Vec<(usize, ElementId)> = Vec::new();
        let mut until = ElementId(0);
        for &outermost in elements {
            if outermost < until {
                continue;
            }
            until = ground.document.element(outermost).end;
            for end in ends.between(outermost, until) {
                let mut takes = leaf.is_none();
                if let Some(subject) = leaf {
                    leaves(ground, subject, end, |_| takes = true);
                }
                if takes {
                    ancestors::climb(ground, steps, end, |above| {
                        pairs.extend(elements.binary_search(&above).ok().map(|place| (place, end)));
                    });
                }
                // Each pair takes a node.
                if pairs.len() > room {
                    return Err(LimitExceeded::Nodes);
                }
            }
        }
        pairs.sort_unstable();
        let mut pairs = pairs.into_iter().peekable();
        for place in 0..bound.len() {
            let start = self.taken.nodes.len();
            while let Some((_, end)) = pairs.next_if(|pair| pair.0 == place) {
                take_at(ground, leaf, end, &mut self.taken.nodes);
            }
            end_list(ground.document, leaf, start, self.taken, self.limit)?;
        }
        Ok(())
    }

    /// Searches for a return path from each bound element, unless that was done.
    fn search(&mut self, group: u32, twig: TwigVariants, bound: Range<usize>) -> Result<(), LimitExceeded> {
        let twig = self.walks.twig(twig, self.taken.bound[bound.clone()].iter().copied());
        // What the walks remember, once for all of them.
        let mut remembered = self.document.elements.len();
        for at in bound {
            let bound = self.taken.bound[at];
            let searched = &mut self.results.searched;
            let (start, end) = *searched.places.entry((group, bound)).or_insert_with(|| {
                let start = searched.nodes.len() as u32;
                self.walks.verifier().select_from(twig, bound, &mut searched.nodes);
                self.results.kept += searched.nodes.len() - start as usize + std::mem::take(&mut remembered);
                (start, searched.nodes.len() as u32)
            });
            let first = self.taken.nodes.len();
            self.taken.nodes.extend_from_slice(&searched.nodes[start as usize..end as usize]);
            self.taken.end(first, self.limit)?;
        }
        Ok(())
    }
}

/// Takes what a path takes at an element that it leads to.
#[inline]
fn take_at(ground: LabelledDocument<'_>, leaf: Option<Subject>, end: ElementId, nodes: &mut Vec<NodeRef>) {
    match leaf {
        None => nodes.push(NodeRef::Element(end)),
        Some(subject) => leaves(ground, subject, end, |leaf| nodes.push(leaf)),
    }
}

fn leaves(ground: LabelledDocument<'_>, subject: Subject, element: ElementId, mut leaf: impl FnMut(NodeRef)) {
    let document = ground.document;
    match subject {
        Subject::Value => leaf(NodeRef::Element(element)),
        Subject::Text => own_texts(document, element, |text| leaf(NodeRef::Text(text))),
        Subject::Attribute(label) => {
            let start = document.element(element).attributes_start;
            for (attribute, place) in document.attributes_of(element).iter().zip(start..) {
                if ground.has_label(label, attribute.name) {
                    leaf(NodeRef::Attribute(element, place));
                }
            }
        }
    }
}

/// Ends a bound element's list of nodes.
#[inline]
fn end_list(
    document: &Document,
    leaf: Option<Subject>,
    start: usize,
    taken: &mut Selected,
    limit: usize,
) -> Result<(), LimitExceeded> {
    if leaf == Some(Subject::Text) {
        // TextIndex of an element may come after those of one in it.
        let order = |node: &NodeRef| document.order(*node);
        let nodes = &mut taken.nodes[start..];
        if !nodes.is_sorted_by_key(order) {
            nodes.sort_unstable_by_key(order);
        }
    }
    taken.end(start, limit)
}

/// Calls `found` with the texts that are children of an element, in order. An element may be found from many, and
/// may be full of elements with texts of their own: these are passed over.
pub(super) fn own_texts(document: &Document, element: ElementId, mut found: impl FnMut(u32)) {
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
