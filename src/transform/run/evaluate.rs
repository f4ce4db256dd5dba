//! The operators, run on a message. Each runs when something above it asks, and once.

use crate::document::{Document, NodeRef, Span};
use crate::ids::ElementId;
use crate::matching::automaton::names::Names;
use crate::matching::twigs::by_name::ByName;
use crate::matching::twigs::occurrences::Places;
use crate::matching::twigs::verify::{Memo, Verifier};
use crate::query::ast::Axis;
use crate::query::decompose::Reach;
use crate::transform::plan::{
    BindingSource, Bindings, BlockPlan, Condition, Constant, Network, Subject, TwigVariants,
};
use crate::transform::run::accept_sets::ElementsByAcceptSet;
use crate::transform::run::ancestors::{self, LabelledDocument, Steps};
use crate::transform::run::results::{ElementListBuilder, Results};
use crate::transform::run::return_nodes::own_texts;
use crate::transform::run::selected::{LimitExceeded, Selected};
use crate::transform::run::value_index::Value;
use crate::tuning::{NESTED_ELEMENTS, SELECTED_LISTS};

pub struct Evaluator<'a> {
    pub network: &'a Network,
    pub results: &'a mut Results,
    pub taken: &'a mut Selected,
    pub document: &'a Document,
    pub names: &'a Names,
    pub walks: TwigEvaluator<'a>,
    /// Where the automaton found the elements of streams; without it they are searched for.
    pub streams: Option<&'a ElementsByAcceptSet>,
    /// Where conditions of the index were found, if that is known.
    pub places: Option<&'a Places>,
    /// The most pairs or bindings that an operator may give.
    pub limit: usize,
}

/// What the twigs of a network are walked with.
pub struct TwigEvaluator<'a> {
    pub words: &'a [u32],
    pub document: &'a Document,
    pub names: &'a Names,
    pub by_name: &'a mut ByName,
    pub memo: &'a mut Memo,
}

impl TwigEvaluator<'_> {
    /// The twig to walk from elements, which are given in order.
    pub(super) fn twig(&self, walk: TwigVariants, elements: impl Iterator<Item = ElementId>) -> u32 {
        if walk.plain == walk.remembering {
            return walk.plain;
        }
        let mut ends = [ElementId(0); NESTED_ELEMENTS];
        let mut around = 0;
        for element in elements {
            while around > 0 && ends[around - 1] <= element {
                around -= 1;
            }
            if around == NESTED_ELEMENTS {
                return walk.remembering;
            }
            ends[around] = self.document.element(element).end;
            around += 1;
        }
        walk.plain
    }

    #[inline]
    pub(super) fn verifier(&mut self) -> Verifier<'_> {
        Verifier::new(self.words, self.document, self.names, self.by_name, self.memo)
    }
}

impl<'a> Evaluator<'a> {
    /// Binds the elements of a block.
    pub fn bind(&mut self, plan: &BlockPlan) -> Result<(), LimitExceeded> {
        self.forget_if_full();
        let (paths, limit) = (plan.groups.len(), self.limit);
        match plan.bound {
            BindingSource::Stream(id) => {
                self.stream(id);
                self.taken.bind(self.results.streams.at(id).iter(), paths, limit)
            }
            BindingSource::Condition(id) => {
                self.condition(id)?;
                self.taken.bind(self.results.conditions.at(id).iter().copied(), paths, limit)
            }
            BindingSource::Joined(id) => {
                self.bindings(id)?;
                self.taken.bind(self.results.bindings.at(id).iter().copied(), paths, limit)
            }
        }
    }

    /// Forgets what is known of the message if that is so much that it is better computed again. What walks
    /// remember counts, too: they come by each element for each predicate.
    #[inline]
    pub fn forget_if_full(&mut self) {
        if self.results.is_full() {
            self.results.forget();
            self.walks.memo.empty();
        }
    }

    pub(super) fn ground(&self) -> LabelledDocument<'a> {
        LabelledDocument { document: self.document, names: self.names }
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
        self.results.kept += self.results.streams.width();
        let set = self.results.streams.insert(id);
        if let Some(streams) = self.streams {
            return streams.gather(id, set);
        }
        for element in (0..ground.document.elements.len()).map(ElementId::from) {
            if steps.last().is_some_and(|&(_, label)| ground.admits(label, element))
                && ancestors::reaches_root(ground, steps, element, |_, _| true)
            {
                set[element.index() / 64] |= 1 << (element.index() % 64);
            }
        }
    }

    /// Pairs, grouped by what is bound: as they come if claims say that they come so, else sorted.
    fn join(&mut self, id: u32) -> Result<(), LimitExceeded> {
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
                outcome = Err(LimitExceeded::Nodes);
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
            Some(_) => ancestors::follow(ground, rest(self.network, id), end, &mut push),
            None => ancestors::climb(ground, rest(self.network, id), end, push),
        }
    }

    /// The values that comparisons of this signature look at, indexed.
    fn selection(&mut self, id: u32) -> Result<(), LimitExceeded> {
        if let Some(outcome) = self.results.selections.outcome(id) {
            return outcome;
        }
        let selection = self.network.selections.at(id);
        self.join(selection.join)?;
        let (mut texts, mut numbers) = self.results.selections.begin(id);
        texts.clear();
        numbers.clear();
        let mut outcome = Ok(());
        for &(bound, end) in self.results.joins.at(selection.join) {
            self.values(selection.subject, end, |value| {
                if selection.numeric {
                    numbers.push(bound, value.of(self.document));
                } else {
                    texts.push(bound, value);
                }
            });
            // An element that is found from many has its attributes for each of them.
            if texts.len() + numbers.len() > SELECTED_LISTS {
                outcome = Err(LimitExceeded::Lists);
                break;
            }
        }
        texts.index(self.document);
        numbers.index();
        self.results.kept += texts.len() + numbers.len();
        self.results.selections.end(id, (texts, numbers), outcome)
    }

    /// The bound elements that pass, ascending.
    fn condition(&mut self, id: u32) -> Result<(), LimitExceeded> {
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
            (Condition::Twig { stream, .. }, _) => self.stream(*stream),
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
                        outcome = Err(LimitExceeded::Nodes);
                        break;
                    }
                }
            }
            Condition::Twig { stream, twig } => {
                let elements = self.results.streams.at(*stream);
                let twig = self.walks.twig(*twig, elements.iter());
                let mut verifier = self.walks.verifier();
                passing.extend(elements.iter().filter(|&element| verifier.holds_at(twig, element)));
                self.results.kept += self.document.elements.len();
            }
        }
        passing.sort();
        self.results.kept += self.results.conditions.end(id, passing, outcome);
        outcome
    }

    /// The elements that pass what a block asks for, each once, in document order.
    fn bindings(&mut self, id: u32) -> Result<(), LimitExceeded> {
        if let Some(outcome) = self.results.bindings.outcome(id) {
            return outcome;
        }
        let network = self.network;
        let bindings = network.bindings.at(id);
        let mut passing = Vec::new();
        if let Bindings::Joined { stream, conditions } = bindings {
            passing = self.pass(conditions)?;
            self.stream(*stream);
        }
        let mut bound = self.results.bindings.begin();
        match bindings {
            Bindings::Joined { stream, conditions } if passing.is_empty() => {
                let passing = |&(step, condition): &(u32, u32)| (step, self.results.conditions.at(condition));
                let passing: Vec<_> = conditions.iter().map(passing).collect();
                self.semijoin(*stream, &passing, &mut bound);
            }
            Bindings::Joined { stream, .. } => {
                let passing: Vec<_> = passing.iter().map(|(step, those)| (*step, those.as_slice())).collect();
                self.semijoin(*stream, &passing, &mut bound);
            }
            Bindings::Twig { twig } => {
                self.results.kept += self.document.elements.len();
                bound.extend(self.walks.verifier().nodes(*twig).into_iter().filter_map(|node| match node {
                    NodeRef::Element(element) => Some(element),
                    _ => None,
                }));
            }
        }
        self.results.kept += self.results.bindings.end(id, bound, Ok(()));
        Ok(())
    }

    /// Has the conditions of a binding path computed. If all together are too much to be kept, each is
    /// forgotten once it is known what passes those of its step, which is given.
    fn pass(&mut self, conditions: &[(u32, u32)]) -> Result<Vec<(u32, Vec<ElementId>)>, LimitExceeded> {
        for (at, &(_, condition)) in conditions.iter().enumerate() {
            self.condition(condition)?;
            if self.results.is_full() && at + 1 < conditions.len() {
                return self.pass_by_step(conditions);
            }
        }
        Ok(Vec::new())
    }

    #[cold]
    fn pass_by_step(
        &mut self,
        conditions: &[(u32, u32)],
    ) -> Result<Vec<(u32, Vec<ElementId>)>, LimitExceeded> {
        let mut passing: Vec<(u32, Vec<ElementId>)> = Vec::new();
        for &(step, condition) in conditions {
            self.forget_if_full();
            self.condition(condition)?;
            let those = self.results.conditions.at(condition);
            match passing.last_mut() {
                Some((last, both)) if *last == step => {
                    both.retain(|element| those.binary_search(element).is_ok());
                }
                _ => passing.push((step, those.to_vec())),
            }
        }
        self.forget_if_full();
        Ok(passing)
    }

    /// The elements of a stream for which the conditions at each step hold, on some way to them. `conditions`:
    /// what passes them, by step.
    fn semijoin(&self, stream: u32, conditions: &[(u32, &[ElementId])], bound: &mut ElementListBuilder) {
        let steps = &self.network.stream_plans[stream as usize].steps;
        let last = steps.len() as u32 - 1;
        let own = conditions.partition_point(|&(step, _)| step < last);
        let (before, own) = conditions.split_at(own);
        // What passes a condition at the last step is in the stream.
        let others = match own.split_first() {
            Some((first, others)) => {
                bound.extend(first.1.iter().copied());
                others
            }
            None => {
                bound.extend(self.results.streams.at(stream).iter());
                own
            }
        };
        for other in others {
            let mut passing = other.1.iter().peekable();
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
            at_step.all(|(_, passing)| passing.binary_search(&element).is_ok())
        };
        let deep = steps.iter().filter(|(axis, _)| *axis == Axis::Descendant).count();
        let ground = self.ground();
        bound.retain(|element| {
            if deep <= 1 {
                ancestors::passes_on_only_way(ground, steps, element, passes)
            } else {
                ancestors::reaches_root(ground, steps, element, passes)
            }
        });
    }

    fn values(&self, subject: Subject, element: ElementId, mut value: impl FnMut(Value)) {
        let text = |span: Span| Value { span, of_attribute: false };
        match subject {
            Subject::Value => value(text(self.document.element(element).text)),
            Subject::Text => own_texts(self.document, element, |place| {
                value(text(self.document.texts[place as usize].content));
            }),
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
pub(super) fn rest(network: &Network, join: u32) -> Steps<'_> {
    let steps = &network.stream_plans[network.joins.at(join).end as usize].steps;
    &steps[steps.len() - network.join_plans[join as usize].rest..]
}
