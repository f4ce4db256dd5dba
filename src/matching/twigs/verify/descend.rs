//! Steps with `//`: tries the elements below a context in document order, without those where the outcome is known.
//!
//! Contexts lie in one another, so without a memory a path with k such steps takes (elements)^k steps:
//!
//! ```text
//! //a//b//c     <a 1><a 2><b 3><x 4/></b></a></a>
//! from a 1:  the step //b is tried on 2..=4 and fails below all of them: the range 2..5 is remembered
//! from a 2:  its range 3..5 lies in that, so nothing is tried
//! ```
//!
//! What failed is remembered for all queries of the message (`Memo::failed`); what was tried and led somewhere, for one
//! walk (`Visits::tried`). If few elements can pass, they are looked up instead: by name, or by the value that a
//! predicate requires.

use super::{Sink, Step, Verifier};
use crate::document::NodeRef;
use crate::ids::{ElementId, NameId};
use crate::matching::budget::{Decided, WorkLimit};
use crate::matching::twigs::verify::by_value::ElementsWithValue;
use crate::segment::twig::*;
use crate::tuning::MEMO_ELEMENTS_BELOW;

/// The list of elements that a step is tried on.
enum Candidates {
    All,
    Named(NameId),
    WithValue(ElementsWithValue),
}

/// The outcome of trying an element.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// The walk is over.
    Over,
    /// No node was reached.
    Failed,
    /// A node was reached, or may have been.
    Reached,
}

/// A range of elements that a step need not be tried on again.
#[derive(Default)]
struct Known {
    start: u32,
    end: u32,
    /// The step fails on all of them. Otherwise this walk has tried them before.
    failed: bool,
}

/// A parent whose children a step with positions has counted.
struct Counted {
    parent: ElementId,
    /// One past the last element below it.
    end: u32,
    outcome: Outcome,
}

impl Verifier<'_> {
    /// Walks a `//` step and the ones after it from a context node. True ends the walk.
    pub(super) fn descend(
        &mut self,
        step: Step,
        steps: u32,
        context: NodeRef,
        sink: &mut Sink<'_>,
    ) -> Decided {
        let (mut from, end) = self.range_below(context);
        let leaf = step.kind >= STEP_ATTRIBUTE_NAME;
        let own = if let NodeRef::Element(element) = context { Some(element) } else { None };
        if leaf && let Some(own) = own {
            // Attributes and text nodes of the context are below it, too.
            from = own.0;
        }
        let named = (step.kind == STEP_NAME && !self.in_record()).then(|| self.names.name_of(step.label));
        let mut candidates = named.map_or(Candidates::All, Candidates::Named);
        let (mut place, mut last) = self.places(&candidates, (from, end));
        if !leaf
            && step.predicates > 0
            && !self.in_record()
            && last - place > self.memo.by_value.scan_elements
        {
            self.memo.by_value.count_walked(last - place);
            if let Some(valued) = self.valued(step) {
                let valued = Candidates::WithValue(valued);
                let (first, end) = self.places(&valued, (from, end));
                // Elements of other names can have the value too.
                if end - first < last - place {
                    (candidates, place, last) = (valued, first, end);
                }
            }
        }
        if place == last {
            return Ok(false);
        }
        let positions = self.has_positions(step);
        let mut counted = Vec::new();
        let remembers = step.memo && !self.in_record() && own.is_some() && end - from > MEMO_ELEMENTS_BELOW;
        // Whether no node was reached so far.
        let mut none_reached = true;
        let mut known = if remembers { self.known(step, from, sink) } else { Known::default() };
        while place < last {
            let element = self.element_at(&candidates, place);
            self.budget.spend(1)?;
            if remembers && element.0 >= known.start {
                // Skip the range; in a list of named elements its end may already be passed.
                if element.0 < known.end {
                    place = self.places(&candidates, (known.end.min(end), end)).0;
                    if !known.failed
                        && let Some(visits) = sink.visits()
                    {
                        visits.reached += 1;
                        none_reached = false;
                    }
                }
                known = self.known(step, element.0.max(known.end), sink);
                continue;
            }
            if let Sink::First { first: Some(first), visits } = sink
                && self.document.order(NodeRef::Element(element)) >= self.document.order(*first)
            {
                visits.reached += 1;
                none_reached = false;
                break;
            }
            place += 1;
            let outcome = if positions && !leaf {
                self.attempt_counted(step, steps, element, &mut counted, sink)?
            } else {
                self.attempt(step, steps, element, positions, sink)?
            };
            if outcome == Outcome::Failed {
                continue;
            }
            if remembers && sink.visits().is_none() {
                self.remember_failed(step, (from, element.0), sink);
                from = element.0 + 1;
            } else if remembers && none_reached {
                self.remember_failed(step, (from, element.0), sink);
            }
            none_reached = false;
            if outcome == Outcome::Over {
                return Ok(true);
            }
        }
        if !remembers {
            return Ok(false);
        }
        if let Some(visits) = sink.visits() {
            visits.tried.add(step.at, from, end);
        }
        if none_reached || sink.visits().is_none() {
            self.remember_failed(step, (from, end), sink);
        }
        Ok(false)
    }

    /// The first range from an element on that need not be tried.
    fn known(&mut self, step: Step, element: u32, sink: &mut Sink<'_>) -> Known {
        let failed = sink.failed(self.memo).next(step.at, element);
        let tried = sink.visits().map(|visits| visits.tried.next(step.at, element));
        match tried {
            Some((start, end)) if start.max(element) < failed.0 => Known { start, end, failed: false },
            _ => Known { start: failed.0, end: failed.1, failed: true },
        }
    }

    /// The positions in a list of the elements of a range.
    fn places(&mut self, candidates: &Candidates, range: (u32, u32)) -> (usize, usize) {
        match candidates {
            Candidates::All => (range.0 as usize, range.1 as usize),
            Candidates::Named(name) => self.by_name.range(self.document, *name, range),
            Candidates::WithValue(valued) => self.memo.by_value.range(valued, range),
        }
    }

    #[inline]
    fn element_at(&self, candidates: &Candidates, place: usize) -> ElementId {
        match candidates {
            Candidates::All => ElementId::from(place),
            Candidates::Named(_) => self.by_name.at(place),
            Candidates::WithValue(valued) => self.memo.by_value.at(valued, place),
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
    ) -> Result<Outcome, WorkLimit> {
        let reached = sink.reached();
        let node = NodeRef::Element(element);
        let over = match step.kind {
            STEP_NAME | STEP_ANY | STEP_WILDCARD => {
                self.admits(step, element) && self.enter(step, steps, node, sink)?
            }
            _ if positions => self.counted(step, steps, node, sink)?,
            _ => self.enter_leaves(step, steps, element, sink)?,
        };
        Ok(outcome(over, reached, sink))
    }

    /// Tries an element with its siblings, unless that was done: positions are counted among the children of a parent.
    fn attempt_counted(
        &mut self,
        step: Step,
        steps: u32,
        element: ElementId,
        counted: &mut Vec<Counted>,
        sink: &mut Sink<'_>,
    ) -> Result<Outcome, WorkLimit> {
        // Those that remain contain the element, the innermost last.
        while counted.pop_if(|counted| counted.end <= element.0).is_some() {}
        let parent = self.document.element(element).parent;
        if let Some(counted) = counted.last()
            && counted.parent == parent
        {
            return Ok(counted.outcome);
        }
        let node = if parent.is_none() { NodeRef::Document } else { NodeRef::Element(parent) };
        let reached = sink.reached();
        let over = self.counted(step, steps, node, sink)?;
        let outcome = outcome(over, reached, sink);
        counted.push(Counted { parent, end: self.range_below(node).1, outcome });
        Ok(outcome)
    }
}

fn outcome(over: bool, reached: usize, sink: &Sink<'_>) -> Outcome {
    if over {
        Outcome::Over
    } else if sink.reached() > reached {
        Outcome::Reached
    } else {
        Outcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use crate::matching::fixture::{matched, segment};
    use crate::tuning::{CACHE_BYTES, Tuning};

    /// The steps that a query takes on a message, which it must not match.
    fn steps(query: &str, message: &str) -> u64 {
        let (targets, work) = matched(&segment(&[query]), message, Tuning::new(CACHE_BYTES));
        assert!(targets.is_empty() && work.verified == 1, "{query}: {work:?}");
        work.steps
    }

    #[test]
    fn a_range_that_failed_is_not_tried_from_another_context() {
        let nested = |depth: usize| format!("{}<b>y</b>{}", "<a>".repeat(depth), "</a>".repeat(depth));
        // The steps of each further `//` are added to those before, not multiplied.
        let query = |axes: usize| format!("{}//b[contains(., 'x')]", "//a".repeat(axes));
        for axes in [2, 4, 8] {
            let (half, all) = (steps(&query(axes), &nested(50)), steps(&query(axes), &nested(100)));
            assert!(half > 0 && all < 5 * half && all < axes as u64 * 100 * 100, "{axes}: {half}, {all}");
        }
    }

    #[test]
    fn only_elements_of_the_name_are_tried() {
        let others = "<o/>".repeat(1_000);
        let message = format!("<r>{others}<a><b>y</b></a>{others}</r>");
        let steps = steps("//a[contains(b, 'x')]", &message);
        assert!((1..20).contains(&steps), "{steps}");
    }

    #[test]
    fn positions_count_the_children_of_each_parent() {
        let message = "<r><a><b/><b>x</b></a><p><a><b>x</b><b/></a></p></r>";
        for (query, expected) in [
            ("//a//b[contains(., 'x')][1]", true),
            ("//a//b[2][contains(., 'x')]", true),
            ("//p//b[2][contains(., 'x')]", false),
            ("//a//b[3][contains(., '')]", false),
        ] {
            let (targets, _) = matched(&segment(&[query]), message, Tuning::new(CACHE_BYTES));
            assert_eq!(!targets.is_empty(), expected, "{query}");
        }
    }
}
