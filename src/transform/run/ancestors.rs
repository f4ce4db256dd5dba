//! From an element at the end of a line up to the elements that the line's earlier steps bind.

use crate::document::Document;
use crate::ids::{ElementId, NameId};
use crate::matching::automaton::names::Names;
use crate::query::ast::Axis;
use crate::segment::format::{ANY, NONE};

/// Axis and label of each step.
pub type Steps<'a> = &'a [(Axis, u32)];

/// A message and what its names are.
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
    pub fn admits(self, label: u32, element: ElementId) -> bool {
        self.has_label(label, self.document.element(element).name)
    }

    /// Whether a name has a label.
    #[inline]
    pub fn has_label(self, label: u32, name: NameId) -> bool {
        let labels = self.names.of(name);
        label == ANY || (label != NONE && (label == labels.name || label == labels.namespace))
    }

    /// The element so many levels up.
    #[inline]
    pub fn above(self, mut element: ElementId, levels: usize) -> ElementId {
        for _ in 0..levels {
            element = self.parent(element);
        }
        element
    }
}

/// Calls `found` with each element above `end` from which `steps` lead to `end`, the nearest first, each
/// once: ways that meet go on as one. `end` is known to pass the last step.
pub fn climb(
    ground: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut found: impl FnMut(ElementId),
) {
    // A bit per step that is already taken, to the element just below, or to any below.
    let (mut near, mut far) = (0u64, 0u64);
    let take = |near: &mut u64, far: &mut u64, step: usize| match steps[step].0 {
        Axis::Child => *near |= 1 << step,
        Axis::Descendant => *far |= 1 << step,
    };
    take(&mut near, &mut far, steps.len() - 1);
    let mut at = ground.parent(end);
    while at.is_some() {
        let (mut taken, mut next) = (near | far, 0);
        if taken == 0 {
            return;
        }
        if taken & 1 != 0 {
            found(at);
            taken &= !1;
        }
        while taken != 0 {
            let step = taken.trailing_zeros() as usize - 1;
            taken &= taken - 1;
            if ground.admits(steps[step].1, at) {
                take(&mut next, &mut far, step);
            }
        }
        near = next;
        at = ground.parent(at);
    }
}

/// Calls `found` for each way that `steps` lead from above to `end`: once for an element if claims prove
/// that there is no second way. Nothing is kept of the ways.
pub fn follow(
    ground: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    found: &mut impl FnMut(ElementId),
) {
    let Some(((axis, _), before)) = steps.split_last() else {
        return found(end);
    };
    let mut at = ground.parent(end);
    while at.is_some() {
        match before.last() {
            None => found(at),
            Some(&(_, label)) if ground.admits(label, at) => follow(ground, before, at, found),
            Some(_) => {}
        }
        if *axis == Axis::Child {
            return;
        }
        at = ground.parent(at);
    }
}

/// Whether `steps` lead from the document node to `end` by elements that pass `passes`, given a step and
/// an element. `end` is known to pass the last step.
pub fn reaches_root(
    ground: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut passes: impl FnMut(usize, ElementId) -> bool,
) -> bool {
    let (mut near, mut far) = (0u64, 0u64);
    let take = |near: &mut u64, far: &mut u64, step: usize| match steps[step].0 {
        Axis::Child => *near |= 1 << step,
        Axis::Descendant => *far |= 1 << step,
    };
    take(&mut near, &mut far, steps.len() - 1);
    let mut at = ground.parent(end);
    loop {
        let (mut taken, mut next) = (near | far, 0);
        if far & 1 != 0 {
            return true;
        }
        if at.is_none() {
            return taken & 1 != 0;
        }
        if taken == 0 {
            return false;
        }
        taken &= !1;
        while taken != 0 {
            let step = taken.trailing_zeros() as usize - 1;
            taken &= taken - 1;
            if ground.admits(steps[step].1, at) && passes(step, at) {
                take(&mut next, &mut far, step);
            }
        }
        near = next;
        at = ground.parent(at);
    }
}

/// The same where claims prove that there is one way, with one `//` at most: the steps before it lie at
/// fixed depths, those after it at fixed heights above `end`.
pub fn passes_on_only_way(
    ground: LabelledDocument<'_>,
    steps: Steps<'_>,
    end: ElementId,
    mut passes: impl FnMut(usize, ElementId) -> bool,
) -> bool {
    let deep = steps.iter().position(|(axis, _)| *axis == Axis::Descendant).unwrap_or(0);
    let mut at = end;
    for step in (0..steps.len() - 1).rev() {
        at = if step + 1 == deep {
            let depth = ground.document.element(at).depth as usize;
            ground.above(at, depth - deep)
        } else {
            ground.parent(at)
        };
        if !passes(step, at) {
            return false;
        }
    }
    true
}
