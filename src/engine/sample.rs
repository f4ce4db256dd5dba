//! A reservoir sample of messages, from which the selectivity of conditions is measured.

use crate::document::{Document, Reader};
use crate::ids::TenantId;
use crate::limits::Limits;
use crate::matching::automaton::dfa::{Cache, Dfa, Scratch};
use crate::matching::automaton::names::Names;
use crate::matching::findings::{Findings, Ranks};
use crate::segment::build::frequency::Measured;
use crate::segment::format::columns::View;
use crate::tuning::{SAMPLE_CACHE_BYTES, SAMPLE_MESSAGE_BYTES, SAMPLE_MESSAGES, SAMPLE_QUERIES_PER_MESSAGE};
use crate::util::hash::GOLDEN;

/// A reservoir: every message seen has the same chance to be in it (Vitter's algorithm R).
pub struct Sample {
    messages: Vec<(String, Vec<u8>)>,
    seen: u64,
    random: u64,
}

impl Sample {
    pub fn new() -> Sample {
        Sample { messages: Vec::new(), seen: 0, random: GOLDEN }
    }

    /// Offers a message.
    pub fn offer(&mut self, tenant: &str, message: &[u8]) {
        if message.len() > SAMPLE_MESSAGE_BYTES {
            return;
        }
        self.seen += 1;
        if self.messages.len() < SAMPLE_MESSAGES {
            self.messages.push((tenant.to_string(), message.to_vec()));
            return;
        }
        let place = (self.next() % self.seen) as usize;
        if let Some(kept) = self.messages.get_mut(place) {
            *kept = (tenant.to_string(), message.to_vec());
        }
    }

    /// Replaces the sample by messages and their tenants; the first ones count where only a few are used.
    pub fn replace<'m>(&mut self, messages: impl Iterator<Item = (&'m str, &'m [u8])>) {
        self.messages = messages.map(|(tenant, message)| (tenant.to_string(), message.to_vec())).collect();
        self.seen = self.messages.len() as u64;
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// xorshift64: the choice need not be unpredictable, and the kernel has no clock to seed with.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Counts in how many messages each condition of a segment holds.
    pub fn measure(&self, view: View<'_>, tenant: impl Fn(&str) -> Option<TenantId>) -> Measured {
        let mut measured = Measured {
            messages: 0,
            conditions: vec![0; view.conditions()],
            sides: vec![Vec::new(); view.slots() * 2],
        };
        let mut reader = Reader::new();
        let mut document = Document::default();
        let mut names = Names::new(view);
        let (mut cache, mut scratch) = (Cache::new(SAMPLE_CACHE_BYTES), Scratch::new(&view));
        let mut findings = Findings::new(view);
        let mut ranks = Ranks::default();
        let of_tenants = self.messages.iter().filter_map(|(name, message)| Some((tenant(name)?, message)));
        for (tenant, message) in of_tenants.take(view.queries() / SAMPLE_QUERIES_PER_MESSAGE) {
            if reader.read(message, &Limits::default(), &mut document).is_err() {
                continue;
            }
            if names.update(reader.vocabulary()) {
                cache.clear();
            }
            ranks.reset();
            let dfa = Dfa { view: &view, root: tenant.root(), names: &names };
            let found = dfa.find(&document, &mut ranks, &mut findings, &mut cache, &mut scratch);
            if found.is_ok() {
                measured.messages += 1;
                findings.conditions.iter().for_each(|condition| measured.conditions[condition as usize] += 1);
                for &slot in findings.slots_with_numbers() {
                    for side in [slot as usize * 2, slot as usize * 2 + 1] {
                        measured.sides[side].push(findings.side(side));
                    }
                }
            } else {
                cache.clear();
            }
            findings.clear();
        }
        measured
    }
}

impl Default for Sample {
    fn default() -> Sample {
        Sample::new()
    }
}
