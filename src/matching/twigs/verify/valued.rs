//! Steps with a predicate that only elements with a certain value pass: these elements are looked up.
//!
//! For `//item[@sku = 'B-7'][price > 50]` in a message with 10,000 items, the step `item` is tried on the elements with
//! the attribute value `B-7` only.

use std::iter::once;

use super::below::children;
use super::{Path, Sink, Step, Verifier};
use crate::document::NodeRef;
use crate::ids::ElementId;
use crate::matching::budget::{Decided, any};
use crate::matching::twigs::verify::by_value::{ElementsWithValue, Key, Owner, Value};
use crate::segment::twig::*;

impl<'a> Verifier<'a> {
    /// The elements that may pass a step, if they can be looked up and so many were tried that it is worthwhile.
    #[cold]
    pub(super) fn valued(&mut self, step: Step) -> Option<ElementsWithValue> {
        let elements =
            if self.memo.by_value.is_worthwhile(self.document) { self.rarest_value(step) } else { None };
        self.memo.by_value.lookups += elements.is_some() as u64;
        elements
    }

    /// Tries a step on the children of a node.
    pub(super) fn enter_children(
        &mut self,
        step: Step,
        steps: u32,
        context: NodeRef,
        sink: &mut Sink<'_>,
    ) -> Decided {
        let few = if step.predicates > 0 && !self.in_record() {
            self.memo.by_value.scan_elements
        } else {
            usize::MAX
        };
        let mut rest = children(self.document, context);
        let (mut count, mut over) = (0, false);
        while !over && let Some(child) = rest.next() {
            if count == few
                && let Some(valued) = self.valued(step)
            {
                return self.enter_valued(step, steps, context, once(child).chain(rest), valued, sink);
            }
            count += 1;
            over = self.enter_child(step, steps, child, sink)?;
        }
        if step.predicates > 0 && !self.in_record() {
            self.memo.by_value.count_walked(count);
        }
        Ok(over)
    }

    /// Tries a step on the rest of a node's children, on those that are `valued` only. Elements deeper below the node
    /// can be `valued` too, and more than there are children: so as many children are tried one by one first.
    fn enter_valued(
        &mut self,
        step: Step,
        steps: u32,
        context: NodeRef,
        mut rest: impl Iterator<Item = ElementId>,
        valued: ElementsWithValue,
        sink: &mut Sink<'_>,
    ) -> Decided {
        let (from, end) = self.range_below(context);
        let (first, last) = self.memo.by_value.range(&valued, (from, end));
        if any(rest.by_ref().take(last - first), |child| self.enter_child(step, steps, child, sink))? {
            return Ok(true);
        }
        let Some(child) = rest.next() else {
            return Ok(false);
        };
        let parent = self.document.element(child).parent;
        let (first, last) = self.memo.by_value.range(&valued, (child.0, end));
        any(first..last, |place| {
            let element = self.memo.by_value.at(&valued, place);
            Ok(self.document.element(element).parent == parent
                && self.enter_child(step, steps, element, sink)?)
        })
    }

    fn enter_child(&mut self, step: Step, steps: u32, child: ElementId, sink: &mut Sink<'_>) -> Decided {
        self.budget.spend(1)?;
        Ok(self.admits(step, child) && self.enter(step, steps, NodeRef::Element(child), sink)?)
    }

    /// The elements with the rarest of the values that the step requires.
    #[cold]
    fn rarest_value(&mut self, step: Step) -> Option<ElementsWithValue> {
        // Positions count the elements that passed the predicates before.
        if self.has_positions(step) {
            return None;
        }
        let mut fewest: Option<ElementsWithValue> = None;
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
            AND => (1..=word >> 8).find_map(|at| self.key(part(self.words, predicate, at))),
            PATH if word >> 8 & 0xFF == FROM_CONTEXT => self.key_of_path(self.decode(predicate)),
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
