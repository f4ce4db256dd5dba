//! Probes: all tests of an accept set on one subject (an attribute, the text, the position), answered together.
//!
//! Values that equal the same constants and lie between the same bounds satisfy the same conditions. They are one
//! *class*, so a probe has few answers however many values there are. A probe with the tests `@p = 5`, `@p > 10`
//! and `@p < 20` has the breakpoints 10 and 20, and these classes:
//!
//! ```text
//! value             5          12           20         "x"
//! class     constant 5,   no constant,  no constant,  no constant,
//!             place 0        place 2      place 3      no place
//! satisfies  = 5, < 20     > 10, < 20      > 10        nothing
//! ```
//!
//! A place is even between two breakpoints and odd on one.

use super::Search;
use super::cache::{CacheFull, PoolRange};
use crate::ids::{ConditionId, LabelId, SubjectId};
use crate::matching::automaton::masks::MaskList;
use crate::matching::values::value_cache::Value;
use crate::segment::format::NONE;
use crate::segment::format::constants::{EqualEntry, UnequalTest};
use crate::segment::format::entries::{ENTRY_NORMALIZED, ENTRY_NUMBER, ENTRY_TEXT};

/// A class of values that a probe cannot distinguish; `NONE` for each part that does not apply.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// The text constant and the number constant that they equal.
    text: u32,
    number: u32,
    /// The constant that they equal once their white space is normalised.
    normalized: u32,
    /// Their place among the breakpoints.
    place: u32,
}

impl Class {
    const NOTHING: Class = Class { text: NONE, number: NONE, normalized: NONE, place: NONE };
}

/// The subject of a probe: the label of an attribute, or another one. It is plain if it only has answers by class.
pub(super) struct Subject {
    pub(super) of: SubjectId,
    pub(super) is_plain: bool,
}

/// Flag of a probe: some entry is tested for inequality.
const PROBE_UNEQUAL: u8 = 1 << 7;

/// The tests of an accept set on one subject.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) flags: u8,
    /// The conditions that every value satisfies.
    pub(super) exists: MaskList,
    /// Slots that gather the numbers; entries with inequalities or bounds. Ranges of the pool.
    pub(super) slots: PoolRange,
    unequal_or_bounds: PoolRange,
    /// Entries to test for equality: a range of `labelled`.
    labelled: PoolRange,
    /// The numbers at which the tests against bounds change: a range of `breakpoints`, ascending.
    pub(super) breakpoints: PoolRange,
}

impl Search<'_> {
    /// The class of a value, whose bytes are looked at only where white space is normalised.
    pub(super) fn class(&self, probe: usize, value: Value, bytes: &[u8]) -> Class {
        let Probe { flags, breakpoints, .. } = self.cache.probes[probe];
        let mut class = Class::NOTHING;
        if flags & ENTRY_TEXT != 0 {
            class.text = value.text;
        }
        if flags & ENTRY_NUMBER != 0 {
            class.number = value.constant;
        }
        if flags & ENTRY_NORMALIZED != 0 {
            class.normalized = self.dfa.view.normalized_constant(bytes);
        }
        if breakpoints.len > 0 && !value.number.is_nan() {
            class.place = place_of(value.number, breakpoints.of(&self.cache.breakpoints));
        }
        class
    }

    /// Prefetches the tests that a class of values can pass: they lie all over the segment.
    pub(super) fn prefetch_tests(&self, probe: usize, class: Class) {
        let subject = self.cache.subjects[probe].of;
        for constant in [class.text, class.number, class.normalized] {
            if constant != NONE {
                for &(label, _) in self.cache.probes[probe].labelled.of(&self.cache.labelled) {
                    self.dfa.view.prefetch_equal(label, subject, constant);
                }
            }
        }
    }

    /// The conditions that a class of values satisfies.
    pub(super) fn answer(&mut self, probe: usize, class: Class) -> Result<MaskList, CacheFull> {
        if class == Class::NOTHING && self.cache.probes[probe].flags & PROBE_UNEQUAL == 0 {
            return Ok(MaskList::EMPTY);
        }
        if let Some(&answer) = self.cache.answers.get(&(probe as u32, class)) {
            return Ok(answer);
        }
        self.cache.check_room()?;
        let answer = self.compute_answer(probe, class);
        self.cache.answers.insert((probe as u32, class), answer);
        Ok(answer)
    }

    fn compute_answer(&mut self, probe: usize, class: Class) -> MaskList {
        let (view, cache, conditions) = (self.dfa.view, &*self.cache, &mut self.scratch.conditions);
        let Probe { labelled, unequal_or_bounds, breakpoints, .. } = cache.probes[probe];
        let subject = cache.subjects[probe].of;
        for constant in [class.text, class.number, class.normalized] {
            if constant != NONE {
                for &(label, entries) in labelled.of(&cache.labelled) {
                    let tests = view.equal(label, subject, constant);
                    intersect(entries.of(&cache.pool), tests, |condition| conditions.set(condition.0));
                }
            }
        }
        for &entry in unequal_or_bounds.of(&cache.pool) {
            for &UnequalTest { constant, condition } in view.unequal(entry as usize) {
                if constant != class.text && constant != class.number {
                    conditions.set(condition.0);
                }
            }
            if class.place != NONE {
                let number = number_at(class.place, breakpoints.of(&cache.breakpoints));
                view.passed_bounds(entry as usize, number).for_each(|condition| conditions.set(condition.0));
            }
        }
        self.store_conditions()
    }

    /// Adds a probe for each subject of the entries, which are given by `entry_key`.
    pub(super) fn add_probes(&mut self, mut entries: Vec<u128>) -> PoolRange {
        entries.sort_unstable();
        let start = self.cache.probes.len();
        for of_subject in entries.chunk_by(|a, b| a >> 64 == b >> 64) {
            self.add_probe(of_subject);
        }
        PoolRange::between(start, self.cache.probes.len())
    }

    fn add_probe(&mut self, entries: &[u128]) {
        let (view, cache) = (self.dfa.view, &mut *self.cache);
        let mut flags = 0;
        let slots_start = cache.pool.len();
        for &entry in entries {
            let entry = entry as u32 as usize;
            flags |= view.entry_flags[entry];
            if view.entry_exists[entry].is_some() {
                self.scratch.conditions.set(view.entry_exists[entry].0);
            }
            if view.entry_slot[entry] != NONE {
                cache.pool.push(view.entry_slot[entry]);
            }
        }
        let slots = PoolRange::between(slots_start, cache.pool.len());
        let others_start = cache.pool.len();
        let breakpoints_start = cache.breakpoints.len();
        for &entry in entries {
            let entry = entry as u32;
            let unequal = !view.unequal(entry as usize).is_empty();
            if unequal {
                flags |= PROBE_UNEQUAL;
            }
            if unequal || !view.bounds(entry as usize).is_empty() {
                cache.pool.push(entry);
                view.push_breakpoints(entry as usize, &mut cache.breakpoints);
            }
        }
        cache.breakpoints[breakpoints_start..].sort_unstable_by(f64::total_cmp);
        let breakpoints = PoolRange::between(breakpoints_start, cache.breakpoints.len());
        let unequal_or_bounds = PoolRange::between(others_start, cache.pool.len());
        let labelled_start = cache.labelled.len();
        for of_label in entries.chunk_by(|a, b| a >> 32 == b >> 32) {
            let start = cache.pool.len();
            let is_tested = |entry: &u32| view.entry_flags[*entry as usize] != 0;
            cache.pool.extend(of_label.iter().map(|&entry| entry as u32).filter(is_tested));
            let entries = PoolRange::between(start, cache.pool.len());
            if entries.len > 0 {
                cache.labelled.push((LabelId((of_label[0] >> 32) as u32), entries));
            }
        }
        let labelled = PoolRange::between(labelled_start, cache.labelled.len());
        let exists = self.store_conditions();
        let is_plain = exists.is_empty() && slots.len == 0;
        self.cache.subjects.push(Subject { of: SubjectId((entries[0] >> 64) as u32), is_plain });
        self.cache.probes.push(Probe { flags, exists, slots, unequal_or_bounds, labelled, breakpoints });
    }
}

/// An entry, in a form that sorts by subject, then label.
pub(super) fn entry_key(subject: SubjectId, label: LabelId, entry: usize) -> u128 {
    (subject.0 as u128) << 64 | (label.0 as u128) << 32 | entry as u128
}

/// The place of a number among breakpoints.
fn place_of(number: f64, breakpoints: &[f64]) -> u32 {
    let below = breakpoints.partition_point(|&breakpoint| breakpoint < number);
    let is_on = breakpoints.get(below).is_some_and(|&breakpoint| breakpoint == number);
    (below * 2 + is_on as usize) as u32
}

/// A number with a place among breakpoints.
fn number_at(place: u32, breakpoints: &[f64]) -> f64 {
    let below = place as usize / 2;
    if place % 2 == 1 {
        return breakpoints[below];
    }
    match below.checked_sub(1) {
        None => f64::NEG_INFINITY,
        // Bounds lie on breakpoints, so the double after one stands for all up to the next.
        Some(last) => breakpoints[last].next_up(),
    }
}

/// Calls `found` with the conditions of the tests whose entry is in `entries`. Both ascend, and either may be much
/// longer: galloping search.
fn intersect(entries: &[u32], tests: &[EqualEntry], mut found: impl FnMut(ConditionId)) {
    let mut rest = entries;
    for &EqualEntry { entry, condition } in tests {
        let mut stride = 1;
        while stride < rest.len() && rest[stride - 1] < entry {
            stride *= 2;
        }
        let within = &rest[..stride.min(rest.len())];
        rest = &rest[within.partition_point(|&other| other < entry)..];
        match rest.first() {
            None => return,
            Some(&first) if first == entry => found(condition),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_number_with_the_same_place() {
        let breakpoints = [10.0, 20.0];
        for (number, place) in [(5.0, 0), (10.0, 1), (12.0, 2), (20.0, 3), (21.0, 4)] {
            assert_eq!(place_of(number, &breakpoints), place);
            assert_eq!(place_of(number_at(place, &breakpoints), &breakpoints), place);
        }
    }

    #[test]
    fn intersection_finds_common_entries_of_lists_of_any_lengths() {
        for (entries, tests) in [(3, 40), (40, 3), (20, 20), (0, 5), (5, 0)] {
            let entries: Vec<u32> = (0..entries).map(|at| at * 3).collect();
            let test = |at: u32| EqualEntry { entry: at * 2, condition: ConditionId(at) };
            let tests: Vec<EqualEntry> = (0..tests).map(test).collect();
            let mut found = Vec::new();
            intersect(&entries, &tests, |condition| found.push(condition));
            let common = tests.iter().filter(|test| entries.contains(&test.entry));
            let expected: Vec<ConditionId> = common.map(|test| test.condition).collect();
            assert_eq!(found, expected);
        }
    }
}
