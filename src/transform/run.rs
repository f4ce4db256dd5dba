//! The operators, run on a message. Each runs when something above it asks, and once.

use std::ops::Range;

use crate::document::{Document, NodeRef, Span};
use crate::ids::ElementId;
use crate::matching::names::Names;
use crate::matching::places::Places;
use crate::matching::verify::Verifier;
use crate::query::ast::Axis;
use crate::query::decompose::Reach;
use crate::transform::climb::{self, Ground, Steps};
use crate::transform::network::Network;
use crate::transform::operators::{Bindings, BlockPlan, Bound, Condition, Constant, Group, Subject};
use crate::transform::results::{Growing, Over, Results, Taken};
use crate::transform::streams::Streams;
use crate::transform::values::Value;

pub struct Run<'a> {
    pub network: &'a Network,
    pub results: &'a mut Results,
    pub taken: &'a mut Taken,
    pub document: &'a Document,
    pub names: &'a Names,
    /// Walks the twigs of the network.
    pub verifier: Verifier<'a>,
    /// Where the automaton found the elements of streams; without it they are searched for.
    pub streams: Option<&'a Streams>,
    /// Where conditions of the index were found, if that is known.
    pub places: Option<&'a Places>,
    /// The most pairs or bindings that an operator may give.
    pub limit: usize,
}

impl<'a> Run<'a> {
    /// Binds the elements of a block.
    pub fn bind(&mut self, plan: &BlockPlan) -> Result<(), Over> {
        let paths = plan.groups.len();
        let bound = match plan.bound {
            Bound::Stream(id) => {
                self.stream(id);
                self.taken.bind(self.results.streams.at(id).iter(), paths)
            }
            Bound::Condition(id) => {
                self.condition(id)?;
                self.taken.bind(self.results.conditions.at(id).iter().copied(), paths)
            }
            Bound::Joined(id) => {
                self.bindings(id)?;
                self.taken.bind(self.results.bindings.at(id).iter().copied(), paths)
            }
        };
        if bound > self.limit { Err(Over) } else { Ok(()) }
    }

    /// Takes the nodes of a block, told by its place among those that are bound: an outer join of its bindings
    /// with its groups.
    pub fn select(&mut self, block: usize, plan: &BlockPlan) -> Result<(), Over> {
        let bound = self.taken.block(block);
        if bound.is_empty() {
            return Ok(());
        }
        plan.groups.iter().try_for_each(|&group| match *self.network.groups.at(group) {
            Group::Joined { join, leaf } => self.take(join, leaf, bound.clone()),
            Group::Search { twig } => self.search(group, twig, bound.clone()),
        })
    }

    /// Takes a group's nodes for each bound element. What is bound and what is found both ascend, so one walk
    /// over each joins them: below a bound element lies a stretch of the stream.
    fn take(&mut self, join: u32, leaf: Option<Subject>, bound: Range<usize>) -> Result<(), Over> {
        let (end, plan) = (self.network.joins.at(join).end, &self.network.join_plans[join as usize]);
        self.stream(end);
        let ground = self.ground();
        let ends = self.results.streams.at(end);
        for at in bound {
            let bound = self.taken.bound[at];
            let element = ground.document.element(bound);
            let nodes = &mut self.taken.nodes;
            let start = nodes.len();
            for end in ends.between(bound, element.end) {
                let levels = || ground.document.element(end).depth - element.depth;
                let leads = plan.depth.is_some()
                    || match plan.reach {
                        Reach::Exactly(reach) => levels() == reach,
                        Reach::AtLeast(reach) => levels() >= reach,
                        Reach::Unclear => climb::leads(ground, rest(self.network, join), bound, end),
                    };
                match leaf {
                    _ if !leads => {}
                    None => nodes.push(NodeRef::Element(end)),
                    Some(subject) => leaves(ground, subject, end, |leaf| nodes.push(leaf)),
                }
            }
            if leaf == Some(Subject::Text) {
                // Texts of an element may come after those of one in it.
                let order = |node: &NodeRef| ground.document.order(*node);
                if !nodes[start..].is_sorted_by_key(order) {
                    nodes[start..].sort_unstable_by_key(order);
                }
            }
            self.taken.end(start, self.limit)?;
        }
        Ok(())
    }

    /// Searches for a return path from each bound element, unless that was done.
    fn search(&mut self, group: u32, twig: u32, bound: Range<usize>) -> Result<(), Over> {
        for at in bound {
            let bound = self.taken.bound[at];
            let searched = &mut self.results.searched;
            let (start, end) = *searched.places.entry((group, bound)).or_insert_with(|| {
                let start = searched.nodes.len() as u32;
                self.verifier.select_from(twig, bound, &mut searched.nodes);
                self.results.kept += searched.nodes.len() - start as usize;
                (start, searched.nodes.len() as u32)
            });
            let first = self.taken.nodes.len();
            self.taken.nodes.extend_from_slice(&searched.nodes[start as usize..end as usize]);
            self.taken.end(first, self.limit)?;
        }
        Ok(())
    }

    fn ground(&self) -> Ground<'a> {
        Ground { document: self.document, names: self.names }
    }

    /// The elements at the end of a line.
    #[inline]
    pub fn stream(&mut self, id: u32) {
        if !self.results.streams.has(id) {
            self.fill(id);
        }
    }

    fn fill(&mut self, id: u32) {
        let (ground, steps) = (self.ground(), &self.network.stream_plans[id as usize].steps);
        let set = self.results.streams.insert(id);
        if let Some(streams) = self.streams {
            return streams.gather(id, set);
        }
        for element in (0..ground.document.elements.len()).map(ElementId::from) {
            if steps.last().is_some_and(|&(_, label)| ground.admits(label, element))
                && climb::reaches_root(ground, steps, element, |_, _| true)
            {
                set[element.index() / 64] |= 1 << (element.index() % 64);
            }
        }
    }

    /// Pairs, grouped by what is bound: as they come if claims say that they come so, else sorted.
    fn join(&mut self, id: u32) -> Result<(), Over> {
        if let Some(outcome) = self.results.joins.outcome(id) {
            return outcome;
        }
        let join = *self.network.joins.at(id);
        self.stream(join.end);
        self.stream(join.binding);
        let mut pairs = self.results.joins.begin(id);
        pairs.clear();
        let mut outcome = Ok(());
        for end in self.results.streams.at(join.end).iter() {
            self.each_bound(id, end, |bound| pairs.push((bound, end)));
            if pairs.len() > self.limit {
                outcome = Err(Over);
                break;
            }
        }
        if !self.network.join_plans[id as usize].is_ordered() {
            pairs.sort_unstable();
        }
        self.results.kept += pairs.len();
        self.results.joins.end(id, pairs, outcome)
    }

    /// Calls `found` with the elements that are bound where a join has an element at its end. The stream that
    /// they are in is there, unless it is clear how far up they are.
    fn each_bound(&self, id: u32, end: ElementId, mut found: impl FnMut(ElementId)) {
        let (join, plan) = (self.network.joins.at(id), &self.network.join_plans[id as usize]);
        let ground = self.ground();
        if let Some(levels) = plan.levels(self.document.element(end)) {
            return found(ground.above(end, levels as usize));
        }
        let bound = self.results.streams.at(join.binding);
        let mut push = |element: ElementId| {
            if bound.has(element) {
                found(element);
            }
        };
        match plan.distinct {
            Some(_) => climb::follow(ground, rest(self.network, id), end, &mut push),
            None => climb::climb(ground, rest(self.network, id), end, push),
        }
    }

    /// The values that comparisons of this signature look at, indexed.
    fn selection(&mut self, id: u32) -> Result<(), Over> {
        if let Some(outcome) = self.results.selections.outcome(id) {
            return outcome;
        }
        let selection = self.network.selections.at(id);
        self.join(selection.join)?;
        let (mut texts, mut numbers) = self.results.selections.begin(id);
        texts.clear();
        numbers.clear();
        for &(bound, end) in self.results.joins.at(selection.join) {
            self.values(selection.subject, end, |value| {
                if selection.numeric {
                    numbers.push(bound, value.of(self.document));
                } else {
                    texts.push(bound, value);
                }
            });
        }
        texts.index(self.document);
        numbers.index();
        self.results.selections.end(id, (texts, numbers), Ok(()))
    }

    /// The bound elements that pass, ascending.
    fn condition(&mut self, id: u32) -> Result<(), Over> {
        if let Some(outcome) = self.results.conditions.outcome(id) {
            return outcome;
        }
        let condition = self.network.conditions.at(id);
        match (condition, self.places) {
            (Condition::Exists { join, .. }, _) => self.join(*join)?,
            (Condition::Compare { selection, .. }, _) => self.selection(*selection)?,
            (Condition::Found { join, .. }, Some(_)) => {
                let plan = &self.network.join_plans[*join as usize];
                if plan.depth.is_none() && !matches!(plan.reach, Reach::Exactly(_)) {
                    self.stream(self.network.joins.at(*join).binding);
                }
            }
            (Condition::Found { compared, .. }, None) => {
                self.condition(*compared)?;
                self.results.conditions.repeat(id, *compared);
                return Ok(());
            }
            (Condition::Search { stream, .. }, _) => self.stream(*stream),
        }
        let mut passing = self.results.conditions.begin();
        let mut outcome = Ok(());
        match condition {
            Condition::Exists { join, leaf } => {
                for &(bound, end) in self.results.joins.at(*join) {
                    let mut there = leaf.is_none();
                    if let Some(subject) = leaf {
                        self.values(*subject, end, |_| there = true);
                    }
                    if there {
                        passing.push(bound);
                    }
                }
            }
            Condition::Compare { selection, operator, constant } => {
                let (texts, numbers) = self.results.selections.at(*selection);
                match constant {
                    Constant::Text(text) => texts.select(self.document, *operator, text, &mut passing),
                    Constant::Number(bits) => {
                        numbers.select(*operator, f64::from_bits(*bits), &mut passing);
                    }
                }
            }
            Condition::Found { condition, join, .. } => {
                for end in self.places.into_iter().flat_map(|places| places.of(*condition)) {
                    self.each_bound(*join, end, |bound| passing.push(bound));
                    if passing.count() > self.limit {
                        outcome = Err(Over);
                        break;
                    }
                }
            }
            Condition::Search { stream, twig } => {
                let elements = self.results.streams.at(*stream).iter();
                passing.extend(elements.filter(|&element| self.verifier.holds_at(*twig, element)));
            }
        }
        passing.sort();
        self.results.kept += self.results.conditions.end(id, passing, outcome);
        outcome
    }

    /// The elements that pass what a block asks for, each once, in document order.
    fn bindings(&mut self, id: u32) -> Result<(), Over> {
        if let Some(outcome) = self.results.bindings.outcome(id) {
            return outcome;
        }
        let bindings = self.network.bindings.at(id);
        if let Bindings::Joined { stream, conditions } = bindings {
            self.stream(*stream);
            for &(_, condition) in conditions {
                self.condition(condition)?;
            }
        }
        let mut bound = self.results.bindings.begin();
        match bindings {
            Bindings::Joined { stream, conditions } => self.semijoin(*stream, conditions, &mut bound),
            Bindings::Search { twig } => {
                bound.extend(self.verifier.nodes(*twig).into_iter().filter_map(|node| match node {
                    NodeRef::Element(element) => Some(element),
                    _ => None,
                }));
            }
        }
        self.results.kept += self.results.bindings.end(id, bound, Ok(()));
        Ok(())
    }

    /// The elements of a stream for which the conditions at each step hold, on some way to them.
    fn semijoin(&self, stream: u32, conditions: &[(u32, u32)], bound: &mut Growing) {
        let steps = &self.network.stream_plans[stream as usize].steps;
        let last = steps.len() as u32 - 1;
        let own = conditions.partition_point(|&(step, _)| step < last);
        let (before, own) = conditions.split_at(own);
        let passing = |&(_, condition): &(u32, u32)| self.results.conditions.at(condition);
        // What passes a condition at the last step is in the stream.
        let others = match own.split_first() {
            Some((first, others)) => {
                bound.extend(passing(first).iter().copied());
                others
            }
            None => {
                bound.extend(self.results.streams.at(stream).iter());
                own
            }
        };
        for other in others {
            let mut passing = passing(other).iter().peekable();
            bound.retain(|element| {
                while passing.next_if(|next| **next < element).is_some() {}
                passing.peek() == Some(&&element)
            });
        }
        if before.is_empty() {
            return;
        }
        let passes = |step: usize, element: ElementId| {
            let mut at_step = before.iter().filter(|(at, _)| *at as usize == step);
            at_step
                .all(|&(_, condition)| self.results.conditions.at(condition).binary_search(&element).is_ok())
        };
        let deep = steps.iter().filter(|(axis, _)| *axis == Axis::Descendant).count();
        let ground = self.ground();
        bound.retain(|element| {
            if deep <= 1 {
                climb::passes_on_only_way(ground, steps, element, passes)
            } else {
                climb::reaches_root(ground, steps, element, passes)
            }
        });
    }

    fn values(&self, subject: Subject, element: ElementId, mut value: impl FnMut(Value)) {
        let text = |span: Span| Value { span, of_attribute: false };
        match subject {
            Subject::Value => value(text(self.document.element(element).text)),
            Subject::Text => self.document.texts_of(element).for_each(|node| value(text(node.content))),
            Subject::Attribute(label) => {
                for attribute in self.document.attributes_of(element) {
                    if self.ground().has_label(label, attribute.name) {
                        value(Value { span: attribute.value, of_attribute: true });
                    }
                }
            }
        }
    }
}

/// The steps of a join's path from the bound element.
fn rest(network: &Network, join: u32) -> Steps<'_> {
    let steps = &network.stream_plans[network.joins.at(join).end as usize].steps;
    &steps[steps.len() - network.join_plans[join as usize].rest..]
}

fn leaves(ground: Ground<'_>, subject: Subject, element: ElementId, mut leaf: impl FnMut(NodeRef)) {
    let document = ground.document;
    match subject {
        Subject::Value => leaf(NodeRef::Element(element)),
        Subject::Text => {
            let texts = document.element(element).texts;
            let own =
                (texts.start..texts.end).filter(|&text| document.texts[text as usize].parent == element);
            own.for_each(|text| leaf(NodeRef::Text(text)));
        }
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
