//! Steps with `//`: the elements below a context, in document order, but for those that the step was
//! tried on already.

use super::{Sink, Step, Verifier};
use crate::document::NodeRef;
use crate::ids::{ElementId, NameId};
use crate::matching::twigs::verify::by_value::Valued;
use crate::segment::twig::*;
use crate::tuning::MEMO_ELEMENTS_BELOW;

/// The elements that a step is tried on.
enum Listed {
    All,
    Named(NameId),
    Valued(Valued),
}

/// What came of an element.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// The walk is over.
    Over,
    /// It led nowhere.
    Failed,
    /// It led somewhere, or may have.
    Led,
}

/// Elements that a step need not be tried on again.
#[derive(Default)]
struct Known {
    start: u32,
    end: u32,
    /// They led nowhere; else, only this walk is done with them.
    failed: bool,
}

/// A parent below which a step with positions has counted.
struct Counted {
    parent: ElementId,
    /// One past the last element below it.
    end: u32,
    outcome: Outcome,
}

impl Verifier<'_> {
    /// Walks a `//` step and the ones after it from a context node. True ends the walk.
    pub(super) fn descend(&mut self, step: Step, steps: u32, context: NodeRef, sink: &mut Sink<'_>) -> bool {
        let (mut from, end) = self.range_below(context);
        let leaf = step.kind >= STEP_ATTRIBUTE_NAME;
        let own = if let NodeRef::Element(element) = context { Some(element) } else { None };
        if leaf && let Some(own) = own {
            // Attributes and text nodes of the context are below it, too.
            from = own.0;
        }
        let named = (step.kind == STEP_NAME).then(|| self.names.name_of(step.label));
        let mut listed = named.map_or(Listed::All, Listed::Named);
        let (mut place, mut last) = self.places(&listed, (from, end));
        if !leaf && step.predicates > 0 && last - place > self.memo.by_value.few {
            self.memo.by_value.walk(last - place);
            if let Some(valued) = self.valued(step) {
                let valued = Listed::Valued(valued);
                let (first, end) = self.places(&valued, (from, end));
                // Others may have the value, too.
                if end - first < last - place {
                    (listed, place, last) = (valued, first, end);
                }
            }
        }
        if place == last {
            return false;
        }
        let positions = self.has_positions(step);
        let mut counted = Vec::new();
        let remembers = step.memo && own.is_some() && end - from > MEMO_ELEMENTS_BELOW;
        // Whether all elements so far led nowhere.
        let mut nowhere = true;
        let mut known = if remembers { self.known(step, from, sink) } else { Known::default() };
        while place < last {
            let element = self.element_at(&listed, place);
            if remembers && element.0 >= known.start {
                // Named elements may have come after it.
                if element.0 < known.end {
                    place = self.places(&listed, (known.end.min(end), end)).0;
                    if !known.failed
                        && let Some(visits) = sink.visits()
                    {
                        visits.met += 1;
                        nowhere = false;
                    }
                }
                known = self.known(step, element.0.max(known.end), sink);
                continue;
            }
            if let Sink::First { first: Some(first), visits } = sink
                && self.document.order(NodeRef::Element(element)) >= self.document.order(*first)
            {
                visits.met += 1;
                nowhere = false;
                break;
            }
            place += 1;
            let outcome = if positions && !leaf {
                self.attempt_counted(step, steps, element, &mut counted, sink)
            } else {
                self.attempt(step, steps, element, positions, sink)
            };
            if outcome == Outcome::Failed {
                continue;
            }
            if remembers && sink.visits().is_none() {
                self.remember_failed(step, (from, element.0), sink);
                from = element.0 + 1;
            } else if remembers && nowhere {
                self.remember_failed(step, (from, element.0), sink);
            }
            nowhere = false;
            if outcome == Outcome::Over {
                return true;
            }
        }
        if !remembers {
            return false;
        }
        if let Some(visits) = sink.visits() {
            visits.tried.add(step.at, from, end);
        }
        if nowhere || sink.visits().is_none() {
            self.remember_failed(step, (from, end), sink);
        }
        false
    }

    /// The first elements that need not be tried, of those at an element and after it.
    fn known(&mut self, step: Step, element: u32, sink: &mut Sink<'_>) -> Known {
        let failed = sink.failed(self.memo).next(step.at, element);
        let tried = sink.visits().map(|visits| visits.tried.next(step.at, element));
        match tried {
            Some((start, end)) if start.max(element) < failed.0 => Known { start, end, failed: false },
            _ => Known { start: failed.0, end: failed.1, failed: true },
        }
    }

    /// Where the elements of a range stand in a list.
    fn places(&mut self, listed: &Listed, range: (u32, u32)) -> (usize, usize) {
        match listed {
            Listed::All => (range.0 as usize, range.1 as usize),
            Listed::Named(name) => self.by_name.range(self.document, *name, range),
            Listed::Valued(valued) => self.memo.by_value.range(valued, range),
        }
    }

    #[inline]
    fn element_at(&self, listed: &Listed, place: usize) -> ElementId {
        match listed {
            Listed::All => ElementId::from(place),
            Listed::Named(_) => self.by_name.at(place),
            Listed::Valued(valued) => self.memo.by_value.at(valued, place),
        }
    }

    fn remember_failed(&mut self, step: Step, (from, end): (u32, u32), sink: &mut Sink<'_>) {
        let most = self.most_kept();
        let failed = sink.failed(self.memo);
        if failed.len() > most {
            failed.clear();
        }
        if from < end {
            failed.add(step.at, from, end);
        }
    }

    /// Tries an element, or the attributes or text nodes of one.
    #[inline]
    fn attempt(
        &mut self,
        step: Step,
        steps: u32,
        element: ElementId,
        positions: bool,
        sink: &mut Sink<'_>,
    ) -> Outcome {
        let met = sink.met();
        let node = NodeRef::Element(element);
        let over = match step.kind {
            STEP_NAME | STEP_ANY | STEP_NAMESPACE => {
                self.admits(step, element) && self.enter(step, steps, node, sink)
            }
            _ if positions => self.counted(step, steps, node, sink),
            _ => self.enter_leaves(step, steps, element, sink),
        };
        outcome(over, met, sink)
    }

    /// Tries an element and its siblings, unless they were: positions count below a parent.
    fn attempt_counted(
        &mut self,
        step: Step,
        steps: u32,
        element: ElementId,
        counted: &mut Vec<Counted>,
        sink: &mut Sink<'_>,
    ) -> Outcome {
        // What is left of them is around the element, the innermost last.
        while counted.pop_if(|counted| counted.end <= element.0).is_some() {}
        let parent = self.document.element(element).parent;
        if let Some(counted) = counted.last()
            && counted.parent == parent
        {
            return counted.outcome;
        }
        let node = if parent.is_none() { NodeRef::Document } else { NodeRef::Element(parent) };
        let met = sink.met();
        let over = self.counted(step, steps, node, sink);
        let outcome = outcome(over, met, sink);
        counted.push(Counted { parent, end: self.range_below(node).1, outcome });
        outcome
    }
}

fn outcome(over: bool, met: usize, sink: &Sink<'_>) -> Outcome {
    if over {
        Outcome::Over
    } else if sink.met() > met {
        Outcome::Led
    } else {
        Outcome::Failed
    }
}
