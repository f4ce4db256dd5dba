//! Evaluates the operators of a network on a message: join, selection, semijoin. An operator runs when one above it
//! needs its result, and at most once per message.
//!
//! Example: the network of `plan/network.rs` on
//!
//! ```text
//! <shop><book><price>8</price><title>A</title></book><book><price>12</price><title>B</title></book></shop>
//! ```
//!
//! whose elements are numbered 0 shop, 1 book, 2 price, 3 title, 4 book, 5 price, 6 title:
//!
//! | operator | result |
//! |---|---|
//! | stream 0, `/shop/book` | 1, 4 |
//! | stream 1, `/shop/book/price` | 2, 5 |
//! | join 0 | (1, 2), (4, 5): from each end one level up, since the path from a book is one child step |
//! | selection 0 | 8 → 1, 12 → 4 |
//! | condition 0, `< 10` | 1, by binary search |
//! | bindings 0 | semijoin of stream 0 with condition 0: 1 |
//! | group 0 | for 1: 3 (`return_nodes.rs`) |
//!
//! A join costs its ends times the steps of its path, a condition a look-up, a semijoin a merge.

use crate::document::{Document, NodeRef};
use crate::ids::{ConditionId, ElementId};
use crate::matching::automaton::names::Names;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::occurrences::Occurrences;
use crate::query::ast::Axis;
use crate::query::linear_path::Reach;
use crate::transform::plan::{BindingSource, Bindings, BlockPlan, Condition, Constant, Network};
use crate::transform::run::accept_sets::ElementsByAcceptSet;
use crate::transform::run::ancestors::{self, LabelledDocument, Steps};
use crate::transform::run::results::{ElementListBuilder, Results};
use crate::transform::run::return_nodes::for_each_leaf;
use crate::transform::run::selected::{LimitExceeded, Selected};
use crate::transform::run::twigs::TwigEvaluator;
use crate::transform::run::value_index::Value;
use crate::tuning::SELECTED_LISTS;

pub struct Evaluator<'a> {
    pub network: &'a Network,
    pub results: &'a mut Results,
    pub selected: &'a mut Selected,
    pub document: &'a Document,
    pub names: &'a Names,
    pub twigs: TwigEvaluator<'a>,
    /// The elements by accept set, if the automaton's states are known; else streams are searched for.
    pub by_accept_set: Option<&'a ElementsByAcceptSet>,
    /// Where conditions of the index hold, if matching recorded it.
    pub occurrences: Option<&'a Occurrences<ConditionId>>,
    /// The most pairs, bound elements or nodes that an operator may give.
    pub limit: usize,
}

impl<'a> Evaluator<'a> {
    /// Adds the elements that a block binds to what is selected.
    pub fn bind(&mut self, plan: &BlockPlan) -> Result<(), LimitExceeded> {
        self.free_if_full();
        let (paths, limit) = (plan.groups.len(), self.limit);
        match plan.source {
            BindingSource::Stream(id) => {
                self.stream(id);
                self.selected.add_block(self.results.streams.at(id).iter(), paths, limit)
            }
            BindingSource::Condition(id) => {
                self.condition(id)?;
                self.selected.add_block(self.results.conditions.at(id).iter().copied(), paths, limit)
            }
            BindingSource::Bindings(id) => {
                self.bindings(id)?;
                self.selected.add_block(self.results.bindings.at(id).iter().copied(), paths, limit)
            }
        }
    }

    /// Empties the result cache if it is full, with the twigs' memo, which may have an entry for each element and
    /// predicate.
    #[inline]
    pub fn free_if_full(&mut self) {
        if self.results.is_full() {
            self.results.free();
            self.twigs.memo.free();
        }
    }

    pub(super) fn message(&self) -> LabelledDocument<'a> {
        LabelledDocument { document: self.document, names: self.names }
    }

    /// Computes the elements at the end of a linear path.
    #[inline]
    pub fn stream(&mut self, id: u32) {
        if !self.results.streams.has(id) {
            self.fill_stream(id);
        }
    }

    fn fill_stream(&mut self, id: u32) {
        let (message, steps) = (self.message(), &self.network.stream_plans[id as usize].steps);
        self.results.entries += self.results.streams.width();
        let set = self.results.streams.insert(id);
        if let Some(by_accept_set) = self.by_accept_set {
            return by_accept_set.add_stream_to(id, set);
        }
        for element in message.elements_from_document(steps) {
            if steps.last().is_some_and(|&(_, label)| message.passes(label, element))
                && ancestors::path_reaches_root(message, steps, element, |_, _| true)
            {
                set[element.index() / 64] |= 1 << (element.index() % 64);
            }
        }
    }

    /// Computes the pairs of a join, sorted by the bound element. They are sorted only if no claim proves that they
    /// come sorted.
    fn join(&mut self, id: u32) -> Result<(), LimitExceeded> {
        if let Some(failed) = self.results.joins.failed(id) {
            return LimitExceeded::Nodes.if_true(failed);
        }
        let join = *self.network.joins.at(id);
        self.stream(join.end);
        self.stream(join.binding);
        let mut pairs = self.results.joins.begin(id);
        pairs.clear();
        let (mut failed, mut ends) = (false, 0);
        for end in self.results.streams.at(join.end).iter() {
            ends += 1;
            self.for_each_bound(id, end, |bound| pairs.push((bound, end)));
            if pairs.len() > self.limit {
                failed = true;
                break;
            }
        }
        if !self.network.join_plans[id as usize].is_ordered() {
            pairs.sort_unstable();
        }
        self.results.entries += pairs.len();
        let steps = ends + pairs.len();
        self.results.joins.end(id, pairs, failed);
        self.twigs.budget.spend(steps)?;
        LimitExceeded::Nodes.if_true(failed)
    }

    /// Calls `found` with the bound elements from which a join leads to an end. Needs the stream of the bound elements,
    /// unless the plan tells how many levels up they are.
    fn for_each_bound(&self, id: u32, end: ElementId, mut found: impl FnMut(ElementId)) {
        let (join, plan) = (self.network.joins.at(id), &self.network.join_plans[id as usize]);
        let message = self.message();
        if let Some(levels) = plan.levels_up(self.document.element(end)) {
            return found(message.ancestor(end, levels as usize));
        }
        let bound = self.results.streams.at(join.binding);
        let mut found_bound = |element: ElementId| {
            if bound.has(element) {
                found(element);
            }
        };
        let steps = steps_from_bound(self.network, id);
        match plan.distinct {
            Some(_) => ancestors::for_each_path_start(message, steps, end, &mut found_bound),
            None => ancestors::for_each_start(message, steps, end, found_bound),
        }
    }

    /// Computes and indexes the values of a selection.
    fn selection(&mut self, id: u32) -> Result<(), LimitExceeded> {
        if let Some(failed) = self.results.selections.failed(id) {
            return LimitExceeded::Lists.if_true(failed);
        }
        let selection = self.network.selections.at(id);
        self.join(selection.join)?;
        let (mut texts, mut numbers) = self.results.selections.begin(id);
        texts.clear();
        numbers.clear();
        let mut failed = false;
        for &(bound, end) in self.results.joins.at(selection.join) {
            for_each_leaf(self.message(), selection.subject, end, |leaf| {
                let value = Value::of(self.document, leaf);
                if selection.numeric {
                    numbers.push(bound, value.bytes(self.document));
                } else {
                    texts.push(bound, value);
                }
            });
            // An end may have many bound elements, and counts with all its attributes for each.
            if texts.len() + numbers.len() > SELECTED_LISTS {
                failed = true;
                break;
            }
        }
        texts.build(self.document);
        numbers.build();
        let values = texts.len() + numbers.len();
        self.results.entries += values;
        self.results.selections.end(id, (texts, numbers), failed);
        self.twigs.budget.spend(values)?;
        LimitExceeded::Lists.if_true(failed)
    }

    /// Computes the elements that pass a condition, sorted.
    fn condition(&mut self, id: u32) -> Result<(), LimitExceeded> {
        let condition = self.network.conditions.at(id);
        let limit = if matches!(condition, Condition::Twig { .. }) {
            LimitExceeded::Work
        } else {
            LimitExceeded::Nodes
        };
        if let Some(failed) = self.results.conditions.failed(id) {
            return limit.if_true(failed);
        }
        match (condition, self.occurrences) {
            (Condition::Exists { join, .. }, _) => self.join(*join)?,
            (Condition::Compare { selection, .. }, _) => self.selection(*selection)?,
            (Condition::Indexed { join, .. }, Some(_)) => {
                let plan = &self.network.join_plans[*join as usize];
                if plan.bound_depth.is_none() && !matches!(plan.reach, Reach::Exactly(_)) {
                    self.stream(self.network.joins.at(*join).binding);
                }
            }
            (Condition::Indexed { fallback, .. }, None) => {
                self.condition(*fallback)?;
                self.results.conditions.share(id, *fallback);
                return Ok(());
            }
            (Condition::Twig { stream, .. }, _) => self.stream(*stream),
        }
        let mut passing = self.results.conditions.begin();
        let mut failed = false;
        match condition {
            Condition::Exists { join, leaf } => {
                for &(bound, end) in self.results.joins.at(*join) {
                    let mut exists = leaf.is_none();
                    if let Some(subject) = leaf {
                        for_each_leaf(self.message(), *subject, end, |_| exists = true);
                    }
                    if exists {
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
            Condition::Indexed { index_condition, join, .. } => {
                let ends =
                    self.occurrences.into_iter().flat_map(|occurrences| occurrences.of(*index_condition));
                for end in ends {
                    self.for_each_bound(*join, end, |bound| passing.push(bound));
                    if passing.count() > self.limit {
                        failed = true;
                        break;
                    }
                }
            }
            Condition::Twig { stream, twig } => {
                let elements = self.results.streams.at(*stream);
                let twig = self.twigs.choose(*twig, elements.iter());
                let mut verifier = self.twigs.verifier();
                for element in elements.iter() {
                    match verifier.holds_at(twig, element) {
                        Ok(true) => passing.push(element),
                        Ok(false) => {}
                        Err(WorkLimit) => {
                            failed = true;
                            break;
                        }
                    }
                }
                self.results.entries += self.document.elements.len();
            }
        }
        passing.sort_and_deduplicate();
        let count = self.results.conditions.end(id, passing, failed);
        self.results.entries += count;
        self.twigs.budget.spend(1 + count)?;
        limit.if_true(failed)
    }

    /// Computes the elements that a block binds, each once, in document order.
    fn bindings(&mut self, id: u32) -> Result<(), LimitExceeded> {
        if let Some(failed) = self.results.bindings.failed(id) {
            return LimitExceeded::Work.if_true(failed);
        }
        let network = self.network;
        let bindings = network.bindings.at(id);
        let mut by_step = Vec::new();
        if let Bindings::Joined { stream, conditions } = bindings {
            by_step = self.conditions(conditions)?;
            self.stream(*stream);
        }
        let mut bound = self.results.bindings.begin();
        let mut failed = false;
        match bindings {
            Bindings::Joined { stream, conditions } if by_step.is_empty() => {
                let passing = |&(step, condition): &(u32, u32)| (step, self.results.conditions.at(condition));
                let passing: Vec<_> = conditions.iter().map(passing).collect();
                self.semijoin(*stream, &passing, &mut bound);
            }
            Bindings::Joined { stream, .. } => {
                let passing: Vec<_> =
                    by_step.iter().map(|(step, passing)| (*step, passing.as_slice())).collect();
                self.semijoin(*stream, &passing, &mut bound);
            }
            Bindings::Twig { twig } => {
                self.results.entries += self.document.elements.len();
                let nodes = self.twigs.verifier().nodes(*twig);
                failed = nodes.is_err();
                bound.extend(nodes.into_iter().flatten().filter_map(|node| match node {
                    NodeRef::Element(element) => Some(element),
                    _ => None,
                }));
            }
        }
        let count = self.results.bindings.end(id, bound, failed);
        self.results.entries += count;
        self.twigs.budget.spend(1 + count)?;
        LimitExceeded::Work.if_true(failed)
    }

    /// Computes the conditions of a binding path. If all together do not fit the result cache, returns the elements
    /// that pass, by step.
    fn conditions(&mut self, conditions: &[(u32, u32)]) -> Result<Vec<(u32, Vec<ElementId>)>, LimitExceeded> {
        for (at, &(_, condition)) in conditions.iter().enumerate() {
            self.condition(condition)?;
            if self.results.is_full() && at + 1 < conditions.len() {
                return self.conditions_by_step(conditions);
            }
        }
        Ok(Vec::new())
    }

    /// Computes the conditions of a binding path one by one, empties the cache in between, and keeps only the
    /// intersection for each step.
    #[cold]
    fn conditions_by_step(
        &mut self,
        conditions: &[(u32, u32)],
    ) -> Result<Vec<(u32, Vec<ElementId>)>, LimitExceeded> {
        let mut by_step: Vec<(u32, Vec<ElementId>)> = Vec::new();
        for &(step, condition) in conditions {
            self.free_if_full();
            self.condition(condition)?;
            let passing = self.results.conditions.at(condition);
            match by_step.last_mut() {
                Some((last, both)) if *last == step => {
                    both.retain(|element| passing.binary_search(element).is_ok());
                }
                _ => by_step.push((step, passing.to_vec())),
            }
        }
        self.free_if_full();
        Ok(by_step)
    }

    /// Appends the elements of a stream to which a path leads on which all conditions hold. `conditions`: step and
    /// passing elements, sorted by step.
    fn semijoin(&self, stream: u32, conditions: &[(u32, &[ElementId])], bound: &mut ElementListBuilder) {
        let steps = &self.network.stream_plans[stream as usize].steps;
        let last = steps.len() as u32 - 1;
        let (earlier, at_last) = conditions.split_at(conditions.partition_point(|&(step, _)| step < last));
        // A condition at the last step gives elements of the stream.
        let others = match at_last.split_first() {
            Some((first, others)) => {
                bound.extend(first.1.iter().copied());
                others
            }
            None => {
                bound.extend(self.results.streams.at(stream).iter());
                at_last
            }
        };
        for other in others {
            let mut passing = other.1.iter().peekable();
            bound.retain(|element| {
                while passing.next_if(|next| **next < element).is_some() {}
                passing.peek() == Some(&&element)
            });
        }
        if earlier.is_empty() {
            return;
        }
        let passes = |step: usize, element: ElementId| {
            let mut at_step = earlier.iter().filter(|(at, _)| *at as usize == step);
            at_step.all(|(_, passing)| passing.binary_search(&element).is_ok())
        };
        let descendant_steps = steps.iter().filter(|(axis, _)| *axis == Axis::Descendant).count();
        let message = self.message();
        bound.retain(|element| {
            if descendant_steps <= 1 {
                ancestors::only_path_passes(message, steps, element, passes)
            } else {
                ancestors::path_reaches_root(message, steps, element, passes)
            }
        });
    }
}

/// The steps of a join from the bound element to the end.
pub(super) fn steps_from_bound(network: &Network, join: u32) -> Steps<'_> {
    let steps = &network.stream_plans[network.joins.at(join).end as usize].steps;
    &steps[steps.len() - network.join_plans[join as usize].steps..]
}
