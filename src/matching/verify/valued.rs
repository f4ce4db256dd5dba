//! Steps with a predicate that only elements with some value pass: these are looked up.

use super::{Path, Step, Verifier};
use crate::index::twig::*;
use crate::matching::by_value::{Key, Owner, Value, Valued};

impl<'a> Verifier<'a> {
    /// The elements that may pass a step, of so many that it would be tried on, if they can be looked up.
    #[inline]
    pub(super) fn valued(&mut self, step: Step, elements: usize) -> Option<Valued> {
        if step.predicates == 0 || !self.memo.by_value.is_worth(self.document, elements) {
            return None;
        }
        self.fewest(step)
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
