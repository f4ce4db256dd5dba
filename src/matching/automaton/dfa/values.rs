//! Tests the values below an element: its attributes, its texts, its string value, its position.
//!
//! Most values are short and repeat. They are answered in three steps, each for all values of the message before
//! the next, and without branching on what was just read, so that the processor waits for many cache lines at
//! once:
//!
//! 1. while elements are visited, a short value is put into `pending`, and its bucket of the probe cache prefetched
//! 2. at the end, all are looked up in the probe cache, and the masks of their answers prefetched
//! 3. the answers are combined into the findings; values that are not in the cache are answered by class first
//!
//! Long values, and those whose number is compared by rows, are answered at once.

use super::Search;
use super::cache::{Accept, CacheFull};
use super::probes::{Probe, Subject};
use crate::ids::{ElementId, LabelId, SubjectId};
use crate::matching::automaton::masks::MaskList;
use crate::matching::values::short::ShortValue;
use crate::segment::format::entries::ENTRY_NUMBER;
use crate::tuning::{PROBE_CACHE_FRACTION, SCAN_SUBJECTS};

/// A short value to be looked up: its answer goes to `tested[at]`.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    at: u32,
    probe: u32,
    value: ShortValue,
}

impl Search<'_> {
    /// Tests the values of an element by the probes of its accept set.
    pub(super) fn test_values(&mut self, accept: u32, element: ElementId) -> Result<(), CacheFull> {
        let Accept { probes, attributes, .. } = self.cache.accepts[accept as usize];
        let (start, end) = (probes.start as usize, (probes.start + probes.len) as usize);
        let others = start + attributes as usize;
        let document = self.document;
        if start < others {
            // The label of `*` is the least.
            let any = (self.cache.subjects[start].of == SubjectId::attribute(LabelId::ANY)) as usize;
            for attribute in document.attributes_of(element) {
                let value = document.value(attribute);
                if any == 1 {
                    self.test(start, element, value)?;
                }
                let labels = self.dfa.names.of(attribute.name);
                for label in labels.all() {
                    if label.is_some()
                        && let Some(probe) = find_subject(label, &self.cache.subjects[..others], start + any)
                    {
                        self.test(probe, element, value)?;
                    }
                }
            }
        }
        for probe in others..end {
            match self.cache.subjects[probe].of {
                SubjectId::TEXT => {
                    for text in document.texts_of(element) {
                        self.test(probe, element, text.content.of(&document.text))?;
                    }
                }
                SubjectId::VALUE => self.test(probe, element, document.string_value(element))?,
                of => {
                    let rank = match of {
                        SubjectId::POSITION => self.ranks.of(document, element).named,
                        SubjectId::POSITION_ANY => self.ranks.of(document, element).any,
                        SubjectId::POSITION_LOCAL => {
                            self.ranks.of_labels(document, self.dfa.names, element).local
                        }
                        _ => self.ranks.of_labels(document, self.dfa.names, element).namespace,
                    };
                    self.test_rank(probe, element, rank)?;
                }
            }
        }
        Ok(())
    }

    /// Tests one value of a probe's subject.
    #[inline]
    fn test(&mut self, probe: usize, element: ElementId, value: &[u8]) -> Result<(), CacheFull> {
        if self.cache.subjects[probe].is_plain
            && let Some(value) = ShortValue::of(value)
        {
            self.postpone(probe, element, value);
            return Ok(());
        }
        self.test_at_once(probe, element, value)
    }

    fn test_rank(&mut self, probe: usize, element: ElementId, rank: u32) -> Result<(), CacheFull> {
        if self.cache.subjects[probe].is_plain {
            self.postpone(probe, element, ShortValue::of_rank(rank));
            return Ok(());
        }
        self.test_at_once(probe, element, rank.to_string().as_bytes())
    }

    /// Leaves a short value to `resolve_pending`.
    #[inline]
    fn postpone(&mut self, probe: usize, element: ElementId, value: ShortValue) {
        let (scratch, probe) = (&mut *self.scratch, probe as u32);
        self.cache.probe_cache.prefetch(probe, value);
        scratch.pending.push(Pending { at: scratch.tested.len() as u32, probe, value });
        scratch.tested.push((element, MaskList::UNKNOWN));
    }

    /// Tests a value that is long, or that is not only tested by its class.
    fn test_at_once(&mut self, probe: usize, element: ElementId, value: &[u8]) -> Result<(), CacheFull> {
        let Probe { exists, flags, slots, breakpoints, .. } = self.cache.probes[probe];
        if !exists.is_empty() {
            self.scratch.present.push((element, exists));
        }
        let is_numeric = flags & ENTRY_NUMBER != 0 || slots.len > 0 || breakpoints.len > 0;
        let bytes = value;
        let value = self.cache.value_cache.value(self.dfa.view, bytes, is_numeric);
        for &slot in slots.of(&self.cache.pool) {
            self.findings.add_number(slot, value.number);
        }
        let class = self.class(probe, value, bytes);
        let answer = self.answer(probe, class)?;
        if !answer.is_empty() {
            self.scratch.tested.push((element, answer));
        }
        Ok(())
    }

    /// Answers the pending values and adds the conditions of all values to the findings.
    pub(super) fn resolve_pending(&mut self) -> Result<(), CacheFull> {
        let pending = std::mem::take(&mut self.scratch.pending);
        let mut all_cached = true;
        for pending in &pending {
            let answer = self.cache.probe_cache.get(pending.probe, pending.value);
            self.scratch.tested[pending.at as usize].1 = answer;
            self.cache.masks.prefetch(answer);
            all_cached &= answer != MaskList::UNKNOWN;
        }
        if !all_cached {
            self.answer_misses(&pending)?;
        }
        self.scratch.pending = pending;
        self.gather_answers();
        for &(_, range) in &self.scratch.value_conditions {
            self.findings.conditions.or(self.cache.masks.range(range));
        }
        Ok(())
    }

    /// Answers the pending values that are not in their bucket of the probe cache.
    #[cold]
    fn answer_misses(&mut self, pending: &[Pending]) -> Result<(), CacheFull> {
        let mut misses = std::mem::take(&mut self.scratch.misses);
        misses.clear();
        for pending in pending {
            let answer = &mut self.scratch.tested[pending.at as usize].1;
            if *answer != MaskList::UNKNOWN {
                continue;
            }
            *answer = self.cache.probe_cache.get_overflowed(pending.probe, pending.value);
            if *answer == MaskList::UNKNOWN {
                let value = self.cache.value_cache.short_value(self.dfa.view, pending.value);
                let (bytes, length) = pending.value.bytes();
                let class =
                    self.class(pending.probe as usize, value, bytes.get(..length).unwrap_or_default());
                self.prefetch_tests(pending.probe as usize, class);
                misses.push((*pending, class));
            }
        }
        for &(pending, class) in &misses {
            let answer = self.answer(pending.probe as usize, class)?;
            self.scratch.tested[pending.at as usize].1 = answer;
            // A message may have the same value twice.
            if self.cache.probe_cache.get(pending.probe, pending.value) == MaskList::UNKNOWN {
                let most = self.cache.capacity / PROBE_CACHE_FRACTION;
                self.cache.probe_cache.put(pending.probe, pending.value, answer, most);
            }
        }
        self.scratch.misses = misses;
        Ok(())
    }

    /// Looks up the masks of all answers, and their blocks, each block once.
    fn gather_answers(&mut self) {
        let (cache, scratch) = (&*self.cache, &mut *self.scratch);
        let count = scratch.present.len() + scratch.tested.len();
        scratch.value_conditions.resize(count, (ElementId::NONE, (0, 0)));
        scratch.tags.resize(count, 0);
        let mut tags = 0;
        scratch.present.iter().chain(&scratch.tested).enumerate().for_each(|(at, &(element, conditions))| {
            let (tag, range) = cache.masks.head(conditions);
            scratch.value_conditions[at] = (element, range);
            scratch.tags[tags] = tag;
            tags += (scratch.wanted_tags.insert(tag) & (tag != 0)) as usize;
        });
        let before = scratch.wanted.len();
        scratch.wanted.extend(scratch.tags[..tags].iter().map(|&tag| cache.block_of_tag[tag as usize]));
        scratch.wanted[before..].iter().for_each(|&block| cache.blocks.prefetch(block));
    }
}

/// The place of a label among the subjects from `start` on, which ascend.
#[inline]
fn find_subject(label: LabelId, subjects: &[Subject], start: usize) -> Option<usize> {
    let (subjects, wanted) = (&subjects[start..], SubjectId::attribute(label));
    let at = match subjects.len() <= SCAN_SUBJECTS {
        true => subjects.iter().position(|subject| subject.of == wanted),
        false => subjects.binary_search_by_key(&wanted, |subject| subject.of).ok(),
    };
    at.map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::super::{Cache, Dfa, Scratch};
    use super::*;
    use crate::ids::TenantId;
    use crate::matching::automaton::nfa::Nfa;
    use crate::matching::fixture::{Messages, segment};

    #[test]
    fn values_of_all_subjects_satisfy_the_conditions_that_they_do_without_a_cache() {
        let queries = [
            "//a/@x = 'short'",
            "//a/@x = 'longer than a word of the processor'",
            "//a/@* = 5",
            "//a/text() = 'te'",
            "//a = 'text'",
            "//a != 'text'",
            "//a[2]",
            "//*[3]",
            "//a/@p > 4",
        ];
        let segment = segment(&queries);
        let view = segment.view();
        let (mut cache, mut scratch) = (Cache::new(1 << 20), Scratch::new(&view));
        let mut messages = Messages::new(&segment);
        let mut sizes = Vec::new();
        for message in [
            "<r><a x='short'/></r>",
            "<r><a x='longer than a word of the processor'/><a y=' 5 '/></r>",
            "<r><a>te<!-- splits texts -->xt</a><b/><b/></r>",
            "<r><a p='4.5'><a p='x'/></a></r>",
        ] {
            // Twice: values that are new, and values that are in the caches.
            let mut found = Vec::new();
            for _ in 0..2 {
                messages.read(message);
                let Messages { document, names, ranks, findings, .. } = &mut messages;
                let dfa = Dfa { view: &view, root: TenantId(0).root(), names };
                dfa.find(document, ranks, findings, &mut cache, &mut scratch).expect("room");
                found.push(findings.conditions.iter().collect::<Vec<_>>());
            }
            messages.read(message);
            let Messages { document, names, ranks, findings, .. } = &mut messages;
            Nfa::default().find(view, TenantId(0).root(), document, names, ranks, findings);
            let expected: Vec<_> = findings.conditions.iter().collect();
            assert_eq!(found, [expected.clone(), expected], "{message}");
            sizes.push(found[0].len());
        }
        assert!(sizes.iter().all(|&size| size > 1), "{sizes:?}");
    }

    #[test]
    fn a_subject_is_found_by_scanning_and_by_binary_search() {
        for count in [SCAN_SUBJECTS as u32, 4 * SCAN_SUBJECTS as u32] {
            let subjects: Vec<Subject> =
                (0..count).map(|at| Subject { of: SubjectId(at * 2), is_plain: true }).collect();
            for at in 1..count {
                assert_eq!(find_subject(LabelId(at * 2), &subjects, 1), Some(at as usize));
                assert_eq!(find_subject(LabelId(at * 2 + 1), &subjects, 1), None);
            }
            // It lies before the start.
            assert_eq!(find_subject(LabelId(0), &subjects, 1), None);
        }
    }
}
