//! The operators, run on a message. Each runs when something above it asks, and once.

use crate::document::{Document, NodeRef, Span};
use crate::ids::ElementId;
use crate::matching::names::Names;
use crate::matching::places::Places;
use crate::matching::verify::Verifier;
use crate::query::ast::Axis;
use crate::query::decompose::Reach;
use crate::transform::climb::{self, Ground, Steps};
use crate::transform::network::{Bindings, BlockPlan, Bound, Condition, Constant, Group, Network, Subject};
use crate::transform::results::{Over, Results, Taken};
use crate::transform::streams::Streams;
use crate::transform::values::Value;

pub struct Run<'a> {
    pub network: &'a Network,
    pub results: &'a mut Results,
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

impl Run<'_> {
    /// Binds the elements of a block.
    pub fn bind(&mut self, plan: &BlockPlan) -> Result<(), Over> {
        match plan.bound {
            Bound::Stream(id) => self.stream(id),
            Bound::Condition(id) => self.condition(id)?,
            Bound::Joined(id) => self.bindings(id)?,
        }
        if self.results.bound(plan).len() > self.limit { Err(Over) } else { Ok(()) }
    }

    /// Takes the nodes of a block that is bound: an outer join of its bindings with its groups.
    pub fn select(&mut self, plan: &BlockPlan) -> Result<(), Over> {
        let bound = self.results.bound(plan).len();
        let mut taken = std::mem::take(&mut self.results.taken);
        taken.begin(bound);
        let groups = if bound > 0 { plan.groups.as_slice() } else { &[] };
        let outcome = groups.iter().try_for_each(|&group| match *self.network.groups.at(group) {
            Group::Joined { join, leaf } => self.take(join, leaf, plan, &mut taken),
            Group::Search { twig } => self.search(group, twig, plan, &mut taken),
        });
        self.results.taken = taken;
        outcome
    }

    /// Takes a group's nodes for each bound element. What is bound and what is found both ascend, so one walk
    /// over each joins them: below a bound element lies a stretch of the stream.
    fn take(
        &mut self,
        join: u32,
        leaf: Option<Subject>,
        block: &BlockPlan,
        taken: &mut Taken,
    ) -> Result<(), Over> {
        let (end, plan) = (self.network.joins.at(join).end, &self.network.join_plans[join as usize]);
        self.stream(end);
        let ground = self.ground();
        let mut ends = self.results.streams.at(end);
        for &bound in self.results.bound(block) {
            let element = self.document.element(bound);
            ends = &ends[ends.partition_point(|end| *end < bound)..];
            let start = taken.nodes.len();
            for &end in ends.iter().take_while(|end| **end < element.end) {
                let levels = self.document.element(end).depth - element.depth;
                let leads = match plan.reach {
                    Reach::Exactly(reach) => levels == reach,
                    Reach::AtLeast(reach) => levels >= reach,
                    Reach::Unclear => climb::leads(ground, self.rest(join), bound, end),
                };
                match leaf {
                    _ if !leads => {}
                    None => taken.nodes.push(NodeRef::Element(end)),
                    Some(subject) => self.leaves(subject, end, |leaf| taken.nodes.push(leaf)),
                }
            }
            // Texts of an element may come after those of one in it.
            let group = &mut taken.nodes[start..];
            let order = |node: &NodeRef| self.document.order(*node);
            if leaf == Some(Subject::Text) && !group.is_sorted_by_key(order) {
                group.sort_unstable_by_key(order);
            }
            taken.end(start, self.limit)?;
        }
        Ok(())
    }

    /// Searches for a return path from each bound element, unless that was done.
    fn search(&mut self, group: u32, twig: u32, block: &BlockPlan, taken: &mut Taken) -> Result<(), Over> {
        for at in 0..self.results.bound(block).len() {
            let bound = self.results.bound(block)[at];
            let searched = &mut self.results.searched;
            let (start, end) = *searched.places.entry((group, bound)).or_insert_with(|| {
                let start = searched.nodes.len() as u32;
                self.verifier.select_from(twig, bound, &mut searched.nodes);
                self.results.kept += searched.nodes.len() - start as usize;
                (start, searched.nodes.len() as u32)
            });
            let first = taken.nodes.len();
            taken.nodes.extend_from_slice(&searched.nodes[start as usize..end as usize]);
            taken.end(first, self.limit)?;
        }
        Ok(())
    }

    fn ground(&self) -> Ground<'_> {
        Ground { document: self.document, names: self.names }
    }

    /// The steps of a join's path from the bound element.
    fn rest(&self, join: u32) -> Steps<'_> {
        let steps = &self.network.stream_plans[self.network.joins.at(join).end as usize].steps;
        &steps[steps.len() - self.network.join_plans[join as usize].rest..]
    }

    pub fn stream(&mut self, id: u32) {
        if self.results.streams.outcome(id).is_some() {
            return;
        }
        let mut elements = self.results.streams.begin();
        match self.streams {
            Some(streams) => streams.gather(id, &mut elements),
            None => {
                let (ground, steps) = (self.ground(), &self.network.stream_plans[id as usize].steps);
                let all = (0..self.document.elements.len()).map(ElementId::from);
                elements.extend(all.filter(|&element| {
                    steps.last().is_some_and(|&(_, label)| ground.admits(label, element))
                        && climb::reaches_root(ground, steps, element, |_, _| true)
                }));
            }
        }
        let _ = self.results.streams.end(id, elements, Ok(()));
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
        for &end in self.results.streams.at(join.end) {
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
        if let Reach::Exactly(levels) = plan.reach {
            return found(ground.above(end, levels as usize));
        }
        let bound = self.results.streams.at(join.binding);
        let mut push = |element: ElementId| {
            if bound.binary_search(&element).is_ok() {
                found(element);
            }
        };
        match plan.distinct {
            Some(_) => climb::follow(ground, self.rest(id), end, &mut push),
            None => climb::climb(ground, self.rest(id), end, push),
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
                if !matches!(self.network.join_plans[*join as usize].reach, Reach::Exactly(_)) {
                    self.stream(self.network.joins.at(*join).binding);
                }
            }
            (Condition::Found { compared, .. }, None) => self.condition(*compared)?,
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
                        passing.sort_unstable();
                    }
                }
            }
            Condition::Found { condition, join, compared } => match self.places {
                Some(places) => {
                    for end in places.of(*condition) {
                        self.each_bound(*join, end, |bound| passing.push(bound));
                        if passing.len() > self.limit {
                            outcome = Err(Over);
                            break;
                        }
                    }
                    passing.sort_unstable();
                }
                None => passing.extend_from_slice(self.results.conditions.at(*compared)),
            },
            Condition::Search { stream, twig } => {
                let elements = self.results.streams.at(*stream).iter();
                passing.extend(elements.filter(|&&element| self.verifier.holds_at(*twig, element)));
            }
        }
        passing.dedup();
        self.results.kept += passing.len();
        self.results.conditions.end(id, passing, outcome)
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
        self.results.kept += bound.len();
        self.results.bindings.end(id, bound, Ok(()))
    }

    /// The elements of a stream for which the conditions at each step hold, on some way to them.
    fn semijoin(&self, stream: u32, conditions: &[(u32, u32)], bound: &mut Vec<ElementId>) {
        let steps = &self.network.stream_plans[stream as usize].steps;
        let last = steps.len() as u32 - 1;
        let own = conditions.partition_point(|&(step, _)| step < last);
        let (before, own) = conditions.split_at(own);
        let passing = |&(_, condition): &(u32, u32)| self.results.conditions.at(condition);
        // What passes a condition at the last step is in the stream.
        let (first, others) = match own.split_first() {
            Some((first, others)) => (passing(first), others),
            None => (self.results.streams.at(stream), own),
        };
        bound.extend(first);
        for other in others {
            let mut passing = passing(other).iter().peekable();
            bound.retain(|element| {
                while passing.next_if(|next| *next < element).is_some() {}
                passing.peek() == Some(&element)
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
        bound.retain(|&element| {
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

    fn leaves(&self, subject: Subject, element: ElementId, mut leaf: impl FnMut(NodeRef)) {
        match subject {
            Subject::Value => leaf(NodeRef::Element(element)),
            Subject::Text => {
                let texts = self.document.element(element).texts;
                let own = (texts.start..texts.end)
                    .filter(|&text| self.document.texts[text as usize].parent == element);
                own.for_each(|text| leaf(NodeRef::Text(text)));
            }
            Subject::Attribute(label) => {
                let start = self.document.element(element).attributes_start;
                for (attribute, place) in self.document.attributes_of(element).iter().zip(start..) {
                    if self.ground().has_label(label, attribute.name) {
                        leaf(NodeRef::Attribute(element, place));
                    }
                }
            }
        }
    }
}
