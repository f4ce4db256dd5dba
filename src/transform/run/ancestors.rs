//! From an element at the end of a linear path up to the elements that its earlier steps bind.
//!
//! Steps are matched bottom-up, one ancestor at a time. The set of steps that are matched so far is a word, a bit
//! per step, so that paths which meet continue as one: an end costs its depth times the number of steps at most,
//! however many paths lead to it.
//!
//! Example: steps `//a//b` and the end `b` in `<a><a><b/></a></a>`. `b` matches the last step; its parent `a` matches
//! the step before, and so does its grandparent. Both are ancestors from which the steps lead to `b`.

use crate::document::Document;
use crate::ids::{ElementId, LabelId, NameId};
use crate::matching::automaton::names::Names;
use crate::query::ast::Axis;

/// Axis and label of each step.
pub type Steps<'a> = &'a [(Axis, LabelId)];

/// A message, and the labels of its names.
#[derive(Clone, Copy)]
pub struct LabelledDocument<'a> {
    pub document: &'a Document,
    pub names: &'a Names,
}

impl LabelledDocument<'_> {
    #[inline]
    pub fn parent(self, element: ElementId) -> ElementId {
        self.document.element(element).parent
    }

    /// Whether an element passes a step's name test.
    #[inline]
    pub fn passes(self, label: LabelId, element: ElementId) -> bool {
        self.has_label(label, self.document.element(element).name)
    }

    #[inline]
    pub fn has_label(self, label: LabelId, name: NameId) -> bool {
        self.names.of(name).pass(label)
    }

    /// The ancestor `levels` levels up.
    #[inline]
    pub fn ancestor(self, mut element: ElementId, levels: usize) -> ElementId {
        for _ in 0..levels {
            element = self.parent(element);
        }
        element
    }
}

/// The steps matched below the current ancestor, a bit for each.
struct MatchedSteps<'a> {
    steps: Steps<'a>,
    /// Child steps matched by the element just below.
    by_child: u64,
    /// Descendant steps matched by any element below.
    by_descendant: u64,
}

impl<'a> MatchedSteps<'a> {
    /// The last step is matched.
    #[inline]
    fn new(steps: Steps<'a>) -> MatchedSteps<'a> {
        let mut matched = MatchedSteps { steps, by_child: 0, by_descendant: 0 };
        matched.insert(steps.len() - 1);
        matched
    }

    #[inline]
    fn insert(&mut self, step: usize) {
        match self.steps[step].0 {
            Axis::Child => self.by_child |= 1 << step,
            Axis::Descendant => self.by_descendant |= 1 << step,
        }
    }

    #[inline]
    fn all(&self) -> u64 {
        self.by_child | self.by_descendant
    }

    /// Goes up to an ancestor, which matches those steps before matched ones that `passes` allows.
    #[inline]
    fn go_up(&mut self, mut passes: impl FnMut(usize) -> bool) {
        let mut matched = self.all() & !1;
        self.by_child = 0;
        while matched != 0 {
            let step = matched.trailing_zeros() as usize - 1;
            matched &= matched - 1;
            if passes(step) {
                self.insert(step);
            }
        }
    }
}

/// Calls `found` with each ancestor of `end` from which `steps` lead to `end`, the nearest first, each once. `end` is
/// known to pass the last step.
pub fn for_each_start(
    message: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut found: impl FnMut(ElementId),
) {
    let mut matched = MatchedSteps::new(steps);
    let mut ancestor = message.parent(end);
    while ancestor.is_some() && matched.all() != 0 {
        if matched.all() & 1 != 0 {
            found(ancestor);
        }
        matched.go_up(|step| message.passes(steps[step].1, ancestor));
        ancestor = message.parent(ancestor);
    }
}

/// The same, once for each path: where claims prove that there is one path only, this needs no sets of steps.
pub fn for_each_path_start(
    message: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    found: &mut impl FnMut(ElementId),
) {
    let Some(((axis, _), before)) = steps.split_last() else {
        return found(end);
    };
    let mut ancestor = message.parent(end);
    while ancestor.is_some() {
        match before.last() {
            None => found(ancestor),
            Some(&(_, label)) if message.passes(label, ancestor) => {
                for_each_path_start(message, before, ancestor, found);
            }
            Some(_) => {}
        }
        if *axis == Axis::Child {
            return;
        }
        ancestor = message.parent(ancestor);
    }
}

/// Whether `steps` lead from the document node to `end` by elements that pass `passes`, given a step and an element.
/// `end` is known to pass the last step.
pub fn path_reaches_root(
    message: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut passes: impl FnMut(usize, ElementId) -> bool,
) -> bool {
    let mut matched = MatchedSteps::new(steps);
    let mut ancestor = message.parent(end);
    loop {
        if matched.by_descendant & 1 != 0 {
            return true;
        }
        if ancestor.is_none() {
            return matched.all() & 1 != 0;
        }
        if matched.all() == 0 {
            return false;
        }
        matched.go_up(|step| message.passes(steps[step].1, ancestor) && passes(step, ancestor));
        ancestor = message.parent(ancestor);
    }
}

/// The same where claims prove that there is one path, with one `//` at most: the steps before it lie at fixed
/// depths, those after it at fixed heights above `end`.
pub fn only_path_passes(
    message: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut passes: impl FnMut(usize, ElementId) -> bool,
) -> bool {
    let descendant = steps.iter().position(|(axis, _)| *axis == Axis::Descendant).unwrap_or(0);
    let mut element = end;
    for step in (0..steps.len() - 1).rev() {
        element = if step + 1 == descendant {
            let depth = message.document.element(element).depth as usize;
            message.ancestor(element, depth - descendant)
        } else {
            message.parent(element)
        };
        if !passes(step, element) {
            return false;
        }
    }
    true
}
