//! The alternatives of all queries of a segment while it is built.

use rustc_hash::FxHashMap;

use crate::ids::{AnchorId, ConditionId};
use crate::segment::rows::MOST_TESTS;
use crate::segment::rows::range::{Range, sortable};
use crate::segment::rows::shape::{MOST_COUNTED, Under};

/// The alternatives of all queries of a segment while it is built, in one array.
#[derive(Default)]
pub struct Alternatives {
    starts: Vec<u32>,
    exact: Vec<bool>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    /// A condition, and how its line lies to the anchors.
    Positive(ConditionId, Under),
    Negative(ConditionId),
    Anchor(AnchorId),
    /// A range with its bound, and how its line lies to the anchors.
    Range(Range, f64, Under),
    /// The place of an anchor among the alternative's, and the position counted there.
    Counted(u32, u32),
}

impl Alternatives {
    pub fn count(&self) -> u32 {
        self.exact.len() as u32
    }

    /// How many parts all alternatives have.
    pub fn size(&self) -> usize {
        self.parts.len()
    }

    pub fn begin(&mut self, exact: bool) {
        self.starts.push(self.parts.len() as u32);
        self.exact.push(exact);
    }

    pub fn positive(&mut self, condition: ConditionId, under: Under) {
        self.parts.push(Part::Positive(condition, under));
    }

    pub fn negative(&mut self, condition: ConditionId) {
        self.parts.push(Part::Negative(condition));
    }

    pub fn anchor(&mut self, anchor: AnchorId) {
        self.parts.push(Part::Anchor(anchor));
    }

    pub fn range(&mut self, range: Range, bound: f64, under: Under) {
        self.parts.push(Part::Range(range, bound, under));
    }

    pub fn counted(&mut self, place: u32, position: u32) {
        match position {
            0..=MOST_COUNTED => self.parts.push(Part::Counted(place, position)),
            _ => self.weaken(),
        }
    }

    /// Leaves something of the alternative that was begun last to verification.
    pub fn weaken(&mut self) {
        *self.exact.last_mut().expect("begun") = false;
    }

    /// Drops the alternative that was begun last if it equals the one before it. `contains(., 'a') or contains(., 'b')`
    /// has two such: both need the same path, and the rest is left to verification.
    pub fn drop_repeated(&mut self, first: u32) {
        let last = self.count() - 1;
        let same = |one: u32, other: u32| {
            self.is_exact(one) == self.is_exact(other) && self.parts(one) == self.parts(other)
        };
        if last > first && same(last - 1, last) {
            self.parts.truncate(self.starts[last as usize] as usize);
            self.starts.pop();
            self.exact.pop();
        }
    }

    pub fn parts(&self, alternative: u32) -> &[Part] {
        let end = self.starts.get(alternative as usize + 1).map_or(self.parts.len(), |&end| end as usize);
        &self.parts[self.starts[alternative as usize] as usize..end]
    }

    pub fn is_exact(&self, alternative: u32) -> bool {
        self.exact[alternative as usize]
    }

    /// Whether the alternative never needs verification.
    pub fn is_sure(&self, alternative: u32) -> bool {
        let (mut lists, mut ranges) = ([0; 2], 0);
        for part in self.parts(alternative) {
            match part {
                Part::Anchor(_) | Part::Counted(..) => return false,
                Part::Positive(..) => lists[0] += 1,
                Part::Negative(_) => lists[1] += 1,
                Part::Range(..) => ranges += 1,
            }
        }
        self.is_exact(alternative) && lists.into_iter().chain([ranges]).all(|count| count <= MOST_TESTS)
    }

    /// The condition that is all there is to an alternative.
    pub fn sole_condition(&self, alternative: u32) -> Option<ConditionId> {
        match self.parts(alternative) {
            [Part::Positive(condition, _)] if self.is_exact(alternative) => Some(*condition),
            _ => None,
        }
    }

    /// The bounds that ranges compare each slot with: (side, bound as an integer), each once.
    pub fn bounds(&self) -> Vec<(usize, u64)> {
        let mut bounds = Vec::new();
        for part in &self.parts {
            if let Part::Range(range, bound, _) = part
                && !bound.is_nan()
            {
                bounds.push((range.side(), sortable(*bound)));
            }
        }
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// Puts conditions in the place of ranges that have one.
    pub fn replace_ranges(&mut self, conditions: &FxHashMap<(usize, u64), ConditionId>) {
        for part in &mut self.parts {
            if let Part::Range(range, bound, under) = *part
                && let Some(&condition) = conditions.get(&(range.side(), sortable(bound)))
            {
                *part = match range.negated() {
                    true => Part::Negative(condition),
                    false => Part::Positive(condition, under),
                };
            }
        }
    }

    pub fn renumber(&mut self, conditions: &[ConditionId], anchors: &[AnchorId]) {
        for part in &mut self.parts {
            match part {
                Part::Positive(condition, _) | Part::Negative(condition) => {
                    *condition = conditions[condition.index()];
                }
                Part::Anchor(anchor) => *anchor = anchors[anchor.index()],
                Part::Range(..) | Part::Counted(..) => {}
            }
        }
    }
}
