//! Steps with a predicate that only elements with some value pass: these are looked up.

use std::iter::once;

use super::{Path, Sink, Step, Verifier, children};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::matching::twigs::verify::by_value::{Key, Owner, Value, Valued};
use crate::segment::twig::*;

impl<'a> Verifier<'a> {
    /// The elements that may pass a step, if they can be looked up and so much was walked that it pays.
    #[cold]
    pub(super) fn valued(&mut self, step: Step) -> Option<Valued> {
        if self.memo.by_value.pays(self.document) { self.fewest(step) } else { None }
    }

    /// Tries a step on the children of a node.
    pub(super) fn enter_children(
        &mut self,
        step: Step,
        steps: u32,
        context: NodeRef,
        sink: &mut Sink<'_>,
    ) -> bool {
        let few = if step.predicates > 0 { self.memo.by_value.few } else { usize::MAX };
        let mut rest = children(self.document, context);
        let (mut count, mut over) = (0, false);
        while !over && let Some(child) = rest.next() {
            if count == few
                && let Some(valued) = self.valued(step)
            {
                return self.enter_valued(step, steps, context, once(child).chain(rest), valued, sink);
            }
            count += 1;
            over = self.enter_child(step, steps, child, sink);
        }
        if step.predicates > 0 {
            self.memo.by_value.walk(count);
        }
        over
    }

    /// Tries a step on the rest of a node's children: on those of them that are `valued`. Others can be, and
    /// they may be more than there are children, so that many children are tried first.
    fn enter_valued(
        &mut self,
        step: Step,
        steps: u32,
        context: NodeRef,
        mut rest: impl Iterator<Item = ElementId>,
        valued: Valued,
        sink: &mut Sink<'_>,
    ) -> bool {
        let (from, end) = self.range_below(context);
        let (first, last) = self.memo.by_value.range(&valued, (from, end));
        if rest.by_ref().take(last - first).any(|child| self.enter_child(step, steps, child, sink)) {
            return true;
        }
        let Some(child) = rest.next() else {
            return false;
        };
        let parent = self.document.element(child).parent;
        let (first, last) = self.memo.by_value.range(&valued, (child.0, end));
        (first..last).any(|place| {
            let element = self.memo.by_value.at(&valued, place);
            self.document.element(element).parent == parent && self.enter_child(step, steps, element, sink)
        })
    }

    fn enter_child(&mut self, step: Step, steps: u32, child: ElementId, sink: &mut Sink<'_>) -> bool {
        self.admits(step, child) && self.enter(step, steps, NodeRef::Element(child), sink)
    }

    /// Those with the rarest of the values that the step asks for.
    #[cold]
    fn fewest(&mut self, step: Step) -> Option<Valued> {
        // Positions count what the predicates before them left, and those only.
        if self.has_positions(step) {
            return None;
        }
        let mut fewest: Option<Valued> = None;
        for predicate in 0..step.predicates {
            if let Some(key) = self.key(self.predicate(step, predicate)) {
                let valued = self.memo.by_value.find(self.document, key);
                if fewest.as_ref().is_none_or(|fewest| valued.count() < fewest.count()) {
                    fewest = Some(valued);
                }
            }
        }
        fewest
    }

    /// The value that an element must have for a predicate to hold.
    fn key(&self, predicate: u32) -> Option<Key<'a>> {
        let word = self.words[predicate as usize];
        match word & 0xFF {
            AND => (1..=word >> 8).find_map(|at| self.key(self.words[(predicate + at) as usize])),
            PATH if word >> 8 & ABSOLUTE == 0 => self.key_of_path(self.decode(predicate)),
            _ => None,
        }
    }

    fn key_of_path(&self, path: Path) -> Option<Key<'a>> {
        let step = (path.steps == 1).then(|| self.step(path.step))?;
        let owner = match step.kind {
            STEP_NAME => Owner::Child,
            STEP_ATTRIBUTE_NAME => Owner::Attribute,
            _ => return None,
        };
        let test = self.words[path.test as usize];
        let value = match test & 0xFF {
            TEST_TEXT => Value::Text(self.literal(path.test)),
            TEST_NUMBER => Value::Number(self.constant(path.test)),
            _ => return None,
        };
        let is_equal = test >> 8 & 0xFF == 0;
        let name = self.names.name_of(step.label);
        (is_equal && !step.descendant && step.predicates == 0).then_some(Key { owner, name, value })
    }
}
