//! The values below an element: attributes, text, positions, looked up by their class.

use super::known::Value;
use super::{Accept, Dfa, Full, Stretch, slice};
use crate::document::Document;
use crate::ids::ElementId;
use crate::index::builder::{ENTRY_NUMBER, ENTRY_TEXT, SUBJECT_POSITION, SUBJECT_TEXT, SUBJECT_VALUE};
use crate::index::columns::View;
use crate::index::trie::{ANY, NONE};
use crate::matching::bits::MaskList;
use crate::matching::blocks::Block;
use crate::matching::findings::{Findings, Ranks};
use crate::matching::names::Names;

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

/// What a probe says of a class of values.
pub(super) struct Answer {
    pub(super) conditions: MaskList,
    pub(super) block: Block,
    /// The document it was last given in.
    pub(super) given: u32,
}

/// Flag of a probe: some entry is tested for inequality.
const PROBE_UNEQUAL: u8 = 1 << 7;

/// What is looked at below such an element: one subject, for all the nodes at once.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) flags: u8,
    /// The answer that holds of every value, or `NONE`.
    pub(super) exists: u32,
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
    ) {
        let Accept { probes, attributes, .. } = self.accepts[accept as usize];
        let (start, end) = (probes.start as usize, (probes.start + probes.len) as usize);
        let others = start + attributes as usize;
        if start < others {
            // The label of `*` is the least.
            let any = (self.subjects[start] == ANY) as usize;
            for attribute in document.attributes_of(element) {
                let value = document.value(attribute);
                if any == 1 {
                    self.test(view, start, element, value, findings);
                }
                let labels = names.of(attribute.name);
                for label in [labels.name, labels.namespace] {
                    let named = start + any;
                    let of_label = |&subject: &u32| label != NONE && subject == label;
                    if let Some(at) = self.subjects[named..others].iter().position(of_label) {
                        self.test(view, named + at, element, value, findings);
                    }
                }
            }
        }
        for probe in others..end {
            match self.subjects[probe] {
                SUBJECT_TEXT => {
                    for text in document.texts_of(element) {
                        self.test(view, probe, element, text.content.of(&document.text), findings);
                    }
                }
                SUBJECT_VALUE => self.test(view, probe, element, document.string_value(element), findings),
                SUBJECT_POSITION => {
                    let rank = ranks.of(document, element).named;
                    self.test_rank(view, probe, element, rank, findings);
                }
                _ => {
                    let rank = ranks.of(document, element).any;
                    self.test_rank(view, probe, element, rank, findings);
                }
            }
        }
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
    ) {
        let Probe { exists, flags, slots, turns, .. } = self.probes[probe];
        if exists != NONE {
            self.present.push((element, exists));
        }
        let is_numeric = flags & ENTRY_NUMBER != 0 || slots.len > 0 || turns.len > 0;
        let value = self.known.value(view, value, is_numeric);
        self.test_known(probe, element, value, findings);
    }
    /// Tests a rank.
    #[inline]
    fn test_rank(
        &mut self,
        view: View<'_>,
        probe: usize,
        element: ElementId,
        rank: u32,
        findings: &mut Findings,
    ) {
        let number = rank as f64;
        let value = Value { text: NONE, constant: view.number_constant(number), number };
        self.test_known(probe, element, value, findings);
    }

    /// Tests a value, now that it is known what it is.
    #[inline]
    fn test_known(&mut self, probe: usize, element: ElementId, value: Value, findings: &mut Findings) {
        let Probe { flags, slots, turns, .. } = self.probes[probe];
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
        for at in slots.start..slots.start + slots.len {
            findings.gather(self.sets[at as usize], value.number);
        }
        self.compare(probe, element, class);
    }

    /// Puts off what a value's class says: see `resolve`.
    #[inline]
    fn compare(&mut self, probe: usize, element: ElementId, class: Class) {
        if class != Class::NOTHING || self.probes[probe].flags & PROBE_UNEQUAL != 0 {
            self.met.push((element, probe as u32, class));
        }
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
        for &(element, probe, class) in &met {
            let known = self.values.get(&(probe, class)).copied();
            self.tested.push((element, known.unwrap_or(NONE)));
        }
        for (at, &(_, probe, class)) in met.iter().enumerate() {
            if self.tested[at].1 == NONE {
                if self.bytes() > capacity {
                    return Err(Full);
                }
                self.tested[at].1 = self.learn(view, probe as usize, class);
            }
        }
        self.met = met;
        self.give();
        for &conditions in &self.fresh {
            findings.conditions.or(self.masks.get(conditions));
        }
        Ok(())
    }

    /// Gathers what the answers say; a second time in the same document one says nothing new.
    fn give(&mut self) {
        let most = self.present.len() + self.tested.len();
        let (mut fresh, mut wanted) = (0, self.wanted.len());
        self.fresh.resize(most, MaskList::default());
        self.wanted.resize(wanted + most, Block::default());
        for &(_, answer) in self.present.iter().chain(&self.tested) {
            let answer = &mut self.answers[answer as usize];
            let is_new = answer.given != self.document;
            answer.given = self.document;
            self.fresh[fresh] = answer.conditions;
            fresh += is_new as usize;
            self.wanted[wanted] = answer.block;
            wanted += (is_new & !answer.block.is_empty()) as usize;
        }
        self.fresh.truncate(fresh);
        self.wanted.truncate(wanted);
    }

    #[cold]
    fn learn(&mut self, view: View<'_>, probe: usize, class: Class) -> u32 {
        // The same class may have been met twice.
        if let Some(&answer) = self.values.get(&(probe as u32, class)) {
            return answer;
        }
        let Probe { labelled, others, .. } = self.probes[probe];
        let subject = self.subjects[probe];
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
        let answer = self.answer(view);
        self.values.insert((probe as u32, class), answer);
        answer
    }

    /// The answer that says `conditions`.
    fn answer(&mut self, view: View<'_>) -> u32 {
        let block = self.blocks.store(view, &self.conditions);
        let conditions = self.masks.store(&mut self.conditions);
        self.answers.push(Answer { conditions, block, given: 0 });
        self.answers.len() as u32 - 1
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

    /// One probe per subject of the entries, given as (subject, label, entry).
    pub(super) fn probes(&mut self, view: View<'_>, mut entries: Vec<(u32, u32, u32)>) -> Stretch {
        entries.sort_unstable();
        let start = self.probes.len() as u32;
        for of_subject in entries.chunk_by(|a, b| a.0 == b.0) {
            let (mut flags, mut exists) = (0, false);
            let slots_start = self.sets.len() as u32;
            for &(_, _, entry) in of_subject {
                let entry = entry as usize;
                flags |= view.entry_flags[entry];
                if view.entry_exists[entry] != NONE {
                    self.conditions.set(view.entry_exists[entry]);
                    exists = true;
                }
                if view.entry_slot[entry] != NONE {
                    self.sets.push(view.entry_slot[entry]);
                }
            }
            let others_start = self.sets.len() as u32;
            let turns_start = self.turns.len();
            for &(_, _, entry) in of_subject {
                let unequal = !view.unequal(entry as usize).is_empty();
                if unequal {
                    flags |= PROBE_UNEQUAL;
                }
                if unequal || view.has_bounds(entry as usize) {
                    self.sets.push(entry);
                    view.turns(entry as usize, &mut self.turns);
                }
            }
            let others_end = self.sets.len() as u32;
            let labelled_start = self.labelled.len() as u32;
            for of_label in of_subject.chunk_by(|a, b| a.1 == b.1) {
                let start = self.sets.len() as u32;
                let tested = |entry: &u32| view.entry_flags[*entry as usize] != 0;
                self.sets.extend(of_label.iter().map(|&(_, _, entry)| entry).filter(tested));
                let entries = Stretch { start, len: self.sets.len() as u32 - start };
                if entries.len > 0 {
                    self.labelled.push((of_label[0].1, entries));
                }
            }
            self.turns[turns_start..].sort_unstable_by(f64::total_cmp);
            let exists = if exists { self.answer(view) } else { NONE };
            self.subjects.push(of_subject[0].0);
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
