//! The values below an element: attributes, text, positions, looked up by their class.

use super::{Accept, Dfa, Full, Stretch, slice};
use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::automaton::masks::MaskList;
use crate::matching::automaton::names::Names;
use crate::matching::findings::{Findings, Ranks};
use crate::matching::values::probe_cache::Short;
use crate::matching::values::value_cache::Value;
use crate::segment::format::columns::View;
use crate::segment::format::entries::{
    ENTRY_NUMBER, ENTRY_TEXT, SUBJECT_POSITION, SUBJECT_TEXT, SUBJECT_VALUE,
};
use crate::segment::format::{ANY, NONE};
use crate::tuning::{PROBE_CACHE_FRACTION, SCAN_SUBJECTS};

/// What all values of a kind have in common, as far as a probe can tell them apart: the constants
/// they equal, and their place among the probe's turns. There are few of these, however many values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub(super) text: u32,
    pub(super) number: u32,
    pub(super) place: u32,
}

impl Class {
    pub(super) const NOTHING: Class = Class { text: NONE, number: NONE, place: NONE };
}

/// A short value that was met: the answer to it goes to `tested`, at this place.
#[derive(Clone, Copy)]
pub(super) struct Met {
    at: u32,
    probe: u32,
    value: Short,
}

/// What a probe looks at. It is plain if a value's answer is all there is to say about it.
pub(super) struct Subject {
    pub(super) of: u32,
    is_plain: bool,
}

/// Flag of a probe: some entry is tested for inequality.
const PROBE_UNEQUAL: u8 = 1 << 7;

/// What is looked at below such an element: one subject, for all the nodes at once.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) flags: u8,
    /// The answer that holds of every value.
    pub(super) exists: MaskList,
    /// Slots to gather numbers for; entries with inequalities or bounds. Stretches of the pool.
    pub(super) slots: Stretch,
    pub(super) others: Stretch,
    /// Entries to test for equality: a stretch of `labelled`.
    pub(super) labelled: Stretch,
    /// The numbers at which what bounds say changes: a stretch of `turns`.
    pub(super) turns: Stretch,
}

impl Dfa {
    /// Looks at the subjects below an element.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn look(
        &mut self,
        view: View<'_>,
        accept: u32,
        element: ElementId,
        document: &Document,
        names: &Names,
        ranks: &mut Ranks,
        findings: &mut Findings,
        capacity: usize,
    ) -> Result<(), Full> {
        let Accept { probes, attributes, .. } = self.accepts[accept as usize];
        let (start, end) = (probes.start as usize, (probes.start + probes.len) as usize);
        let others = start + attributes as usize;
        if start < others {
            // The label of `*` is the least.
            let any = (self.subjects[start].of == ANY) as usize;
            for attribute in document.attributes_of(element) {
                let value = document.value(attribute);
                if any == 1 {
                    self.test(view, start, element, value, findings, capacity)?;
                }
                let labels = names.of(attribute.name);
                for label in [labels.name, labels.namespace] {
                    if label != NONE
                        && let Some(probe) = place_of(label, &self.subjects[..others], start + any)
                    {
                        self.test(view, probe, element, value, findings, capacity)?;
                    }
                }
            }
        }
        for probe in others..end {
            match self.subjects[probe].of {
                SUBJECT_TEXT => {
                    for text in document.texts_of(element) {
                        let value = text.content.of(&document.text);
                        self.test(view, probe, element, value, findings, capacity)?;
                    }
                }
                SUBJECT_VALUE => {
                    self.test(view, probe, element, document.string_value(element), findings, capacity)?;
                }
                SUBJECT_POSITION => {
                    self.meet(probe, element, Short::of_rank(ranks.of(document, element).named))
                }
                _ => self.meet(probe, element, Short::of_rank(ranks.of(document, element).any)),
            }
        }
        Ok(())
    }

    /// Tests one value of a probe's subject.
    #[inline]
    fn test(
        &mut self,
        view: View<'_>,
        probe: usize,
        element: ElementId,
        value: &[u8],
        findings: &mut Findings,
        capacity: usize,
    ) -> Result<(), Full> {
        if self.subjects[probe].is_plain
            && let Some(value) = Short::of(value)
        {
            self.meet(probe, element, value);
            return Ok(());
        }
        self.test_at_once(view, probe, element, value, findings, capacity)
    }

    /// Puts off what is said of a short value: see `resolve`.
    #[inline]
    fn meet(&mut self, probe: usize, element: ElementId, value: Short) {
        self.recent.prefetch(probe as u32, value);
        self.met.push(Met { at: self.tested.len() as u32, probe: probe as u32, value });
        self.tested.push((element, MaskList::UNKNOWN));
    }

    /// Tests a value that is long, or of which there is more to say.
    fn test_at_once(
        &mut self,
        view: View<'_>,
        probe: usize,
        element: ElementId,
        value: &[u8],
        findings: &mut Findings,
        capacity: usize,
    ) -> Result<(), Full> {
        let Probe { exists, flags, slots, turns, .. } = self.probes[probe];
        if !exists.is_empty() {
            self.present.push((element, exists));
        }
        let is_numeric = flags & ENTRY_NUMBER != 0 || slots.len > 0 || turns.len > 0;
        let value = self.known.value(view, value, is_numeric);
        for at in slots.start..slots.start + slots.len {
            findings.gather(self.sets[at as usize], value.number);
        }
        let class = self.class(probe, value);
        let answer = self.answer(view, probe, class, capacity)?;
        if !answer.is_empty() {
            self.tested.push((element, answer));
        }
        Ok(())
    }

    /// The class of a value.
    fn class(&self, probe: usize, value: Value) -> Class {
        let Probe { flags, turns, .. } = self.probes[probe];
        let mut class = Class::NOTHING;
        if flags & ENTRY_TEXT != 0 {
            class.text = value.text;
        }
        if flags & ENTRY_NUMBER != 0 {
            class.number = value.constant;
        }
        if turns.len > 0 && !value.number.is_nan() {
            let turns = &self.turns[turns.start as usize..(turns.start + turns.len) as usize];
            let below = turns.partition_point(|&turn| turn < value.number);
            let on = turns.get(below).is_some_and(|&turn| turn == value.number);
            class.place = (below * 2 + on as usize) as u32;
        }
        class
    }

    /// Sets the conditions that hold of the values met. Each step is taken for all values before
    /// the next one, and none branches on what it has just read: so the processor waits for many
    /// values at once, and the cache is larger than what is near it.
    pub(super) fn resolve(
        &mut self,
        view: View<'_>,
        findings: &mut Findings,
        capacity: usize,
    ) -> Result<(), Full> {
        let met = std::mem::take(&mut self.met);
        let mut known = true;
        for met in &met {
            let answer = self.recent.get(met.probe, met.value);
            self.tested[met.at as usize].1 = answer;
            self.masks.prefetch(answer);
            known &= answer != MaskList::UNKNOWN;
        }
        if !known {
            self.recall(view, &met, capacity)?;
        }
        self.met = met;
        self.give();
        for &(_, stretch) in &self.fresh {
            findings.conditions.or(self.masks.stretch(stretch));
        }
        Ok(())
    }

    /// Gathers where the answers stand, and their blocks, each once.
    fn give(&mut self) {
        let count = self.present.len() + self.tested.len();
        self.fresh.resize(count, (ElementId::NONE, (0, 0)));
        self.tags.resize(count, 0);
        let mut tags = 0;
        self.present.iter().chain(&self.tested).enumerate().for_each(|(at, &(element, conditions))| {
            let (tag, stretch) = self.masks.head(conditions);
            self.fresh[at] = (element, stretch);
            self.tags[tags] = tag;
            tags += (self.given.insert(tag) & (tag != 0)) as usize;
        });
        let wanted = self.wanted.len();
        self.wanted.extend(self.tags[..tags].iter().map(|&tag| self.tagged[tag as usize]));
        self.wanted[wanted..].iter().for_each(|&block| self.blocks.prefetch(block));
    }

    /// Finds out what is said of short values that were not met lately.
    #[cold]
    fn recall(&mut self, view: View<'_>, met: &[Met], capacity: usize) -> Result<(), Full> {
        let mut asked = std::mem::take(&mut self.asked);
        asked.clear();
        for met in met {
            if self.tested[met.at as usize].1 != MaskList::UNKNOWN {
                continue;
            }
            // It may have given way to another.
            let answer = self.recent.get_beside(met.probe, met.value);
            self.tested[met.at as usize].1 = answer;
            if answer == MaskList::UNKNOWN {
                let value = self.known.short(view, met.value);
                let class = self.class(met.probe as usize, value);
                self.prefetch_tests(view, met.probe as usize, class);
                asked.push((*met, class));
            }
        }
        for &(met, class) in &asked {
            let answer = self.answer(view, met.probe as usize, class, capacity)?;
            self.tested[met.at as usize].1 = answer;
            // The same value may have been met twice.
            if self.recent.get(met.probe, met.value) == MaskList::UNKNOWN {
                self.recent.put(met.probe, met.value, answer, capacity / PROBE_CACHE_FRACTION);
            }
        }
        self.asked = asked;
        Ok(())
    }

    /// Announces that the tests will be asked for which a class of values can pass: they lie all over
    /// the segment.
    fn prefetch_tests(&self, view: View<'_>, probe: usize, class: Class) {
        let Stretch { start, len } = self.probes[probe].labelled;
        let subject = self.subjects[probe].of;
        for constant in [class.text, class.number] {
            if constant != NONE {
                for &(label, _) in &self.labelled[start as usize..(start + len) as usize] {
                    view.prefetch_equal(label, subject, constant);
                }
            }
        }
    }

    /// What a probe says of a class of values.
    fn answer(
        &mut self,
        view: View<'_>,
        probe: usize,
        class: Class,
        capacity: usize,
    ) -> Result<MaskList, Full> {
        if class == Class::NOTHING && self.probes[probe].flags & PROBE_UNEQUAL == 0 {
            return Ok(MaskList::EMPTY);
        }
        if let Some(&answer) = self.values.get(&(probe as u32, class)) {
            return Ok(answer);
        }
        if self.bytes() > capacity {
            return Err(Full);
        }
        let answer = self.learn(view, probe, class);
        self.values.insert((probe as u32, class), answer);
        Ok(answer)
    }

    fn learn(&mut self, view: View<'_>, probe: usize, class: Class) -> MaskList {
        let Probe { labelled, others, .. } = self.probes[probe];
        let subject = self.subjects[probe].of;
        for constant in [class.text, class.number] {
            if constant != NONE {
                for at in labelled.start..labelled.start + labelled.len {
                    let (label, entries) = self.labelled[at as usize];
                    let tests = view.equal(label, subject, constant);
                    let conditions = &mut self.conditions;
                    intersect(slice(&self.sets, entries), tests, |condition| conditions.set(condition));
                }
            }
        }
        for at in others.start..others.start + others.len {
            let entry = self.sets[at as usize] as usize;
            for &[constant, condition] in view.unequal(entry) {
                if constant != class.text && constant != class.number {
                    self.conditions.set(condition);
                }
            }
            if class.place != NONE {
                let number = self.number_at(probe, class.place);
                view.passed_bounds(entry, number).for_each(|condition| self.conditions.set(condition));
            }
        }
        self.store_conditions(view)
    }

    /// A number with a place among a probe's turns: a turn, or one between two.
    fn number_at(&self, probe: usize, place: u32) -> f64 {
        let Stretch { start, len } = self.probes[probe].turns;
        let turns = &self.turns[start as usize..(start + len) as usize];
        let below = place as usize / 2;
        if place % 2 == 1 {
            return turns[below];
        }
        match below.checked_sub(1) {
            None => f64::NEG_INFINITY,
            // Bounds lie on turns, so the double after one stands for all up to the next.
            Some(last) => turns[last].next_up(),
        }
    }

    /// One probe per subject of the entries, given by `of_entry`.
    pub(super) fn probes(&mut self, view: View<'_>, mut entries: Vec<u128>) -> Stretch {
        entries.sort_unstable();
        let start = self.probes.len() as u32;
        for of_subject in entries.chunk_by(|a, b| a >> 64 == b >> 64) {
            let mut flags = 0;
            let slots_start = self.sets.len() as u32;
            for &entry in of_subject {
                let entry = entry as u32 as usize;
                flags |= view.entry_flags[entry];
                if view.entry_exists[entry] != NONE {
                    self.conditions.set(view.entry_exists[entry]);
                }
                if view.entry_slot[entry] != NONE {
                    self.sets.push(view.entry_slot[entry]);
                }
            }
            let others_start = self.sets.len() as u32;
            let turns_start = self.turns.len();
            for &entry in of_subject {
                let entry = entry as u32;
                let unequal = !view.unequal(entry as usize).is_empty();
                if unequal {
                    flags |= PROBE_UNEQUAL;
                }
                if unequal || !view.bounds(entry as usize).is_empty() {
                    self.sets.push(entry);
                    view.push_breakpoints(entry as usize, &mut self.turns);
                }
            }
            let others_end = self.sets.len() as u32;
            let labelled_start = self.labelled.len() as u32;
            for of_label in of_subject.chunk_by(|a, b| a >> 32 == b >> 32) {
                let start = self.sets.len() as u32;
                let tested = |entry: &u32| view.entry_flags[*entry as usize] != 0;
                self.sets.extend(of_label.iter().map(|&entry| entry as u32).filter(tested));
                let entries = Stretch { start, len: self.sets.len() as u32 - start };
                if entries.len > 0 {
                    self.labelled.push(((of_label[0] >> 32) as u32, entries));
                }
            }
            self.turns[turns_start..].sort_unstable_by(f64::total_cmp);
            let exists = self.store_conditions(view);
            let is_plain = exists.is_empty() && slots_start == others_start;
            self.subjects.push(Subject { of: (of_subject[0] >> 64) as u32, is_plain });
            let stretch = |start: u32, end: u32| Stretch { start, len: end - start };
            self.probes.push(Probe {
                flags,
                exists,
                slots: stretch(slots_start, others_start),
                others: stretch(others_start, others_end),
                labelled: stretch(labelled_start, self.labelled.len() as u32),
                turns: stretch(turns_start as u32, self.turns.len() as u32),
            });
        }
        Stretch { start, len: self.probes.len() as u32 - start }
    }
}

/// An entry below its label below its subject, in a form that sorts at once.
pub(super) fn of_entry(subject: u32, label: u32, entry: usize) -> u128 {
    (subject as u128) << 64 | (label as u128) << 32 | entry as u128
}

/// Where a label is among subjects, which ascend from a place on.
#[inline]
fn place_of(label: u32, subjects: &[Subject], start: usize) -> Option<usize> {
    let subjects = &subjects[start..];
    let at = match subjects.len() <= SCAN_SUBJECTS {
        true => subjects.iter().position(|subject| subject.of == label),
        false => subjects.binary_search_by_key(&label, |subject| subject.of).ok(),
    };
    at.map(|at| start + at)
}

/// The conditions of those tests (entry, condition) whose entry is among the entries; both ascend.
fn intersect(entries: &[u32], tests: &[[u32; 2]], mut found: impl FnMut(u32)) {
    let mut rest = entries;
    for &[entry, condition] in tests {
        // What lies before is passed in growing strides: either list may be far the longer.
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
