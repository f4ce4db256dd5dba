//! Entities that are not predefined.

use std::ops::Range;

use super::fault::Read;
use super::reader::{Parse, Suspended};

impl<'a> Parse<'a> {
    /// A reference in content, at `at`, to the entity whose name is at `name`; reading goes on at
    /// the place given, in the entity's replacement text if it has one.
    pub fn enter_entity(&mut self, at: usize, name: Range<usize>, after: usize) -> Read<usize> {
        self.skippable(at, name)?;
        Ok(after)
    }

    /// Back to where the entity was referred to.
    pub fn leave_entity(&mut self, outer: Suspended<'a>) -> usize {
        (self.text, self.end, self.base) = (outer.text, outer.end, outer.base);
        if self.suspended.is_empty() {
            self.reference = None;
        }
        outer.at
    }

    /// Adds the replacement text of an entity to the attribute value being read.
    pub fn expand_in_value(&mut self, at: usize, name: Range<usize>) -> Read<()> {
        self.skippable(at, name)
    }

    /// Whether an entity we know nothing of may be passed over: only if a declaration of it may
    /// stand in what we do not read. expat does the same.
    fn skippable(&self, at: usize, name: Range<usize>) -> Read<()> {
        if self.doctype.get().is_some_and(|doctype| doctype.incomplete) && !self.standalone {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&self.text[name]);
        Err(self.fault(
            "undeclared-entity",
            format!("the entity {name} is not declared"),
            at,
        ))
    }
}
