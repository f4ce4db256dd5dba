//! What walks remember of a message.

use rustc_hash::FxHashMap;

use super::tried::Tried;
use crate::ids::ElementId;
use crate::matching::twigs::verify::by_value::ByValue;
use crate::matching::twigs::verify::substring_cache::Sought;
use crate::tuning::MEMO_SPARE_PAGES;

/// What was decided where a walk can come by again. It is true for every query that has the step
/// or the predicate, so it is kept through a message.
pub struct Memo {
    pub(super) by_value: ByValue,
    /// Steps and elements that led nowhere.
    pub(super) failed: Tried,
    pub(super) predicates: Verdicts,
    /// Absolute paths in predicates: the same wherever they are asked from.
    pub(super) absolute: FxHashMap<u32, bool>,
    /// Where literals were found in the text, by test.
    pub(super) sought: FxHashMap<u32, Sought>,
}

impl Memo {
    /// So many elements are gone through one by one; where there are more, they are looked up if they can.
    pub fn new(few: usize) -> Memo {
        Memo {
            by_value: ByValue::new(few),
            failed: Tried::default(),
            predicates: Verdicts::default(),
            absolute: FxHashMap::default(),
            sought: FxHashMap::default(),
        }
    }

    /// Lets go of all that it holds.
    pub fn empty(&mut self) {
        *self = Memo::new(self.by_value.few);
    }

    pub fn clear(&mut self) {
        self.by_value.reset();
        self.failed.clear();
        self.predicates.clear();
        self.absolute.clear();
        self.sought.clear();
    }
}

/// What predicates say of elements.
#[derive(Default)]
pub struct Verdicts {
    /// By predicate and 32 elements side by side.
    pages: FxHashMap<(u32, u32), Page>,
}

#[derive(Clone, Copy, Default)]
struct Page {
    known: u32,
    held: u32,
}

impl Verdicts {
    fn clear(&mut self) {
        if self.pages.capacity() > MEMO_SPARE_PAGES {
            self.pages = FxHashMap::default();
        }
        self.pages.clear();
    }

    #[inline]
    pub fn get(&self, predicate: u32, element: ElementId) -> Option<bool> {
        let (page, bit) = place(element);
        let page = self.pages.get(&(predicate, page))?;
        (page.known & bit != 0).then_some(page.held & bit != 0)
    }

    /// Remembers a verdict. If there are more than `most` pages, the others are forgotten.
    #[inline]
    pub fn insert(&mut self, predicate: u32, element: ElementId, holds: bool, most: usize) {
        if self.pages.len() > most {
            self.pages.clear();
        }
        let (page, bit) = place(element);
        let page = self.pages.entry((predicate, page)).or_default();
        page.known |= bit;
        page.held |= if holds { bit } else { 0 };
    }
}

/// An element's page, and its bit there.
#[inline]
fn place(element: ElementId) -> (u32, u32) {
    (element.0 / 32, 1 << (element.0 % 32))
}
