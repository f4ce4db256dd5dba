//! Document × generation → matches: the hot loop.

use std::sync::Arc;

use crate::document::{Document, Reader, Vocabulary};
use crate::engine::generation::{Generation, Part};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::matching::automaton::dfa::Dfa;
use crate::matching::automaton::names::Names;
use crate::matching::automaton::nfa::Nfa;
use crate::matching::candidates::blocks::{Block, Blocks};
use crate::matching::candidates::range_families::Alike;
use crate::matching::candidates::{Collector, Judge, Met, Work};
use crate::matching::findings::{Findings, Ranks};
use crate::matching::twigs::by_name::ByName;
use crate::matching::twigs::compiled::Compiled;
use crate::matching::twigs::occurrences::Found;
use crate::matching::twigs::settle::{Settler, Unsettled};
use crate::matching::twigs::verify::{Memo, Verifier};
use crate::query::QueryId;
use crate::segment::format::columns::View;
use crate::segment::format::file::Segment;
use crate::transform::{Conformance, MatchedMessage, OperatorReport, Outputs, Schema, Transformer};
use crate::tuning::{ROW_BATCH, TRANSFORM_CACHE_FRACTION, Tuning};

/// A thread's scratch space and caches. Compiled things are shared and never change; a matcher is
/// one thread's own, and what it remembers of a segment lives as long as the segment does.
pub struct Matcher {
    reader: Reader,
    document: Document,
    segments: Vec<Remembered>,
    generation: Option<u64>,
    tuning: Tuning,
    nfa: Nfa,
    ranks: Ranks,
    by_name: ByName,
    /// The rows of a message that was matched without a cache.
    blocks: Blocks,
    opened: Vec<u32>,
    unsettled: Vec<Unsettled>,
    unverified: Vec<u32>,
    unmatched: Vec<u32>,
    alike: Alike,
    outbox: Box<[u32; ROW_BATCH]>,
    places: Box<[u32; ROW_BATCH]>,
    conformance: Conformance,
}

/// What a matcher keeps of one segment.
struct Remembered {
    segment: Arc<Segment>,
    names: Names,
    dfa: Dfa,
    findings: Findings,
    met: Met,
    memo: Memo,
    compiled: Compiled,
    settler: Settler,
    transformer: Transformer,
    /// Whether the DFA has matched all of the last message.
    whole: bool,
}

impl Remembered {
    fn new(segment: Arc<Segment>, tuning: &Tuning) -> Remembered {
        let view = segment.view();
        let (names, dfa, findings) = (Names::new(view), Dfa::new(view), Findings::new(view));
        let (met, settler) = (Met::new(view), Settler::new(view, tuning.scan_occurrences));
        Remembered {
            segment,
            names,
            dfa,
            findings,
            met,
            memo: Memo::new(tuning.scan_elements),
            compiled: Compiled::default(),
            settler,
            transformer: Transformer::default(),
            whole: false,
        }
    }

    fn cache_bytes(&self) -> usize {
        self.dfa.bytes() + self.transformer.bytes()
    }
}

/// The matching queries of a message, and the work they were.
#[derive(Default)]
pub struct Matches {
    /// Numbers of the generation's queries, in no particular order.
    pub queries: Vec<u32>,
    pub work: Work,
    /// References to entities that were not read, which the message lacks.
    pub skipped_entities: u32,
}

/// What `walk_batch` found in one message.
pub struct Walked<'a, T> {
    pub document: &'a Document,
    pub vocabulary: &'a Vocabulary,
    /// By query, ascending.
    pub found: Vec<(u32, T)>,
}

/// What a matcher's caches hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct CacheStats {
    pub bytes: usize,
    pub states: usize,
    pub clears: u64,
}

impl Matcher {
    pub fn new(tuning: Tuning) -> Matcher {
        Matcher {
            reader: Reader::new(),
            document: Document::default(),
            segments: Vec::new(),
            generation: None,
            tuning,
            nfa: Nfa::default(),
            ranks: Ranks::default(),
            by_name: ByName::default(),
            blocks: Blocks::default(),
            opened: Vec::new(),
            unsettled: Vec::new(),
            unverified: Vec::new(),
            unmatched: Vec::new(),
            alike: Alike::default(),
            outbox: Box::new([0; ROW_BATCH]),
            places: Box::new([0; ROW_BATCH]),
            conformance: Conformance::default(),
        }
    }

    /// Matches messages one by one and hands each outcome to `sink`.
    pub fn match_batch<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item = &'m [u8]>,
        limits: &Limits,
        mut sink: impl FnMut(Result<&Matches, ReadError>),
    ) {
        self.prepare(generation);
        let active = self.active(generation, tenant);
        let mut matches = Matches::default();
        for message in messages {
            matches.queries.clear();
            matches.work = Work::default();
            match self.reader.read(message, limits, &mut self.document) {
                Ok(()) => {
                    matches.skipped_entities = self.document.skipped_entities;
                    self.match_document(&active, &mut matches);
                    sink(Ok(&matches));
                }
                Err(error) => sink(Err(error)),
            }
        }
    }

    /// Matches messages and hands over, per message, each matching query with what `walk` finds for
    /// it on the document.
    pub fn walk_batch<'m, T>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item = &'m [u8]>,
        limits: &Limits,
        walk: impl Fn(&mut Verifier<'_>, u32) -> T,
        mut sink: impl FnMut(Result<Walked<'_, T>, ReadError>),
    ) {
        self.prepare(generation);
        let active = self.active(generation, tenant);
        let mut matches = Matches::default();
        for message in messages {
            matches.queries.clear();
            if let Err(error) = self.reader.read(message, limits, &mut self.document) {
                sink(Err(error));
                continue;
            }
            self.match_document(&active, &mut matches);
            matches.queries.sort_unstable();
            let mut found = Vec::with_capacity(matches.queries.len());
            let mut rest = matches.queries.as_slice();
            for Active { at, view, base, .. } in &active {
                let (own, others) =
                    rest.split_at(rest.partition_point(|query| query - base < view.queries() as u32));
                rest = others;
                let Remembered { segment, names, memo, compiled, .. } = &mut self.segments[*at];
                compiled.trim();
                own.iter().for_each(|query| compiled.prepare(segment, names, query - base));
                memo.clear();
                let mut verifier =
                    Verifier::new(compiled.words(), &self.document, names, &mut self.by_name, memo);
                for &query in own {
                    let offset = compiled.offset(query - base).expect("prepared");
                    found.push((query, walk(&mut verifier, offset)));
                }
                memo.clear();
            }
            sink(Ok(Walked { document: &self.document, vocabulary: self.reader.vocabulary(), found }));
        }
    }

    /// Matches messages and hands over, per message, what matching transformations make of it. Messages
    /// that conform to a schema are transformed by plans made for it.
    pub fn transform_batch<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item = &'m [u8]>,
        limits: &Limits,
        schema: Option<&Arc<Schema>>,
        mut sink: impl FnMut(Result<(&Matches, &Outputs), ReadError>),
    ) {
        self.prepare(generation);
        let active = self.active(generation, tenant);
        let (mut matches, mut outputs) = (Matches::default(), Outputs::default());
        for message in messages {
            matches.queries.clear();
            matches.work = Work::default();
            outputs.clear();
            if let Err(error) = self.reader.read(message, limits, &mut self.document) {
                sink(Err(error));
                continue;
            }
            matches.skipped_entities = self.document.skipped_entities;
            let vocabulary = self.reader.vocabulary();
            let conforms =
                |schema: &&Arc<Schema>| self.conformance.conforms(schema, &self.document, vocabulary);
            let schema = schema.filter(conforms);
            self.match_document(&active, &mut matches);
            matches.queries.sort_unstable();
            let mut rest = matches.queries.as_slice();
            for active in &active {
                let Active { view, base, .. } = active;
                let (own, others) =
                    rest.split_at(rest.partition_point(|query| query - base < view.queries() as u32));
                rest = others;
                let (transformer, matched) = self.matched(active);
                let own = own.iter().map(|query| query - base);
                transformer.transform(matched, schema, own, *base, limits, &mut outputs);
            }
            self.trim_transformers();
            sink(Ok((&matches, &outputs)));
        }
    }

    /// Which operators a transformation of the generation runs on a message; none if it does not have it.
    pub fn explain_transformation(
        &mut self,
        generation: &Generation,
        tenant: &str,
        query: QueryId,
        message: &[u8],
        limits: &Limits,
        schema: Option<&Arc<Schema>>,
    ) -> Result<Vec<OperatorReport>, ReadError> {
        self.prepare(generation);
        let active = self.active(generation, tenant);
        self.reader.read(message, limits, &mut self.document)?;
        let vocabulary = self.reader.vocabulary();
        let schema = schema.filter(|schema| self.conformance.conforms(schema, &self.document, vocabulary));
        self.match_document(&active, &mut Matches::default());
        for active in &active {
            let view = active.view;
            let is_it = |&at: &usize| {
                let tenant = view.query_tenant.get(at).is_none_or(|&tenant| tenant == active.tenant);
                tenant && view.query_id[at] == query.0
            };
            if let Some(at) = (0..view.queries()).find(is_it) {
                let (_, matched) = self.matched(active);
                return Ok(Transformer::explain(matched, schema, at as u32, limits));
            }
        }
        Ok(Vec::new())
    }

    /// What a segment's transformations need of the message that was matched last.
    fn matched(&mut self, active: &Active<'_>) -> (&mut Transformer, MatchedMessage<'_>) {
        let Remembered { segment, names, dfa, memo, transformer, whole, .. } = &mut self.segments[active.at];
        let matched = MatchedMessage {
            segment,
            root: active.tenant,
            document: &self.document,
            vocabulary: self.reader.vocabulary(),
            names,
            dfa: whole.then_some(dfa),
            by_name: &mut self.by_name,
            memo,
        };
        (transformer, matched)
    }

    /// The parts that hold queries of a tenant.
    fn active<'g>(&self, generation: &'g Generation, tenant: &str) -> Vec<Active<'g>> {
        let parts = generation.parts().iter().enumerate();
        parts
            .filter_map(|(at, part)| {
                let tenant = part.tenant(tenant)?;
                Some(Active { at, part, view: part.segment.view(), tenant, base: generation.base(at) })
            })
            .collect()
    }

    /// Keeps what is remembered of segments that the generation still has.
    fn prepare(&mut self, generation: &Generation) {
        if self.generation == Some(generation.number) && self.segments.len() == generation.parts().len() {
            return;
        }
        let mut known = std::mem::take(&mut self.segments);
        for part in generation.parts() {
            let same = |remembered: &Remembered| Arc::ptr_eq(&remembered.segment, &part.segment);
            self.segments.push(match known.iter().position(same) {
                Some(at) => known.swap_remove(at),
                None => Remembered::new(part.segment.clone(), &self.tuning),
            });
        }
        self.generation = Some(generation.number);
    }

    fn match_document(&mut self, active: &[Active<'_>], matches: &mut Matches) {
        self.ranks.reset();
        self.by_name.reset();
        let held = |segments: &[Remembered]| segments.iter().map(Remembered::cache_bytes).sum();
        let mut held_by_all: usize = held(&self.segments);
        if held_by_all > self.tuning.cache_bytes {
            self.segments.iter_mut().for_each(|remembered| remembered.dfa.clear());
            held_by_all = held(&self.segments);
        }
        for Active { at, part, view, tenant, base } in active {
            let Remembered { names, dfa, findings, met, memo, settler, whole, .. } = &mut self.segments[*at];
            let held_by_others = held_by_all - dfa.bytes();
            if names.update(self.reader.vocabulary()) {
                dfa.clear();
            }
            let room = self.tuning.cache_bytes.saturating_sub(held_by_others);
            let found = dfa.find(*view, *tenant, &self.document, names, &mut self.ranks, findings, room);
            *whole = found.is_ok();
            if found.is_err() {
                // This message goes without; the next one starts with an empty cache.
                findings.clear();
                self.nfa.find(*view, *tenant, &self.document, names, &mut self.ranks, findings);
            }
            held_by_all = held_by_others + dfa.bytes();
            let unremembered: Block;
            let (blocks, wanted) = match found {
                Ok(()) => dfa.wanted(),
                Err(_) => {
                    self.blocks.clear();
                    unremembered = self.blocks.store(*view, findings.conditions.words());
                    (&self.blocks, std::slice::from_ref(&unremembered))
                }
            };
            findings.hold_always();
            let judge = OnDocument {
                view: *view,
                found: found.is_ok().then_some(Found { document: &self.document, dfa }),
                settler,
                verifier: Verifier::new(view.twig, &self.document, names, &mut self.by_name, memo),
            };
            let mut collector = Collector {
                view: *view,
                findings,
                dead: part.dead_queries(),
                met,
                opened: &mut self.opened,
                unsettled: &mut self.unsettled,
                unverified: &mut self.unverified,
                unmatched: &mut self.unmatched,
                alike: &mut self.alike,
                few: self.tuning.verify_singly,
                judge,
                outbox: &mut self.outbox,
                filled: 0,
                places: &mut self.places,
                base: *base,
                matches: &mut matches.queries,
                work: &mut matches.work,
            };
            collector.collect(*tenant, blocks, wanted);
            settler.reset();
            findings.clear();
            memo.clear();
        }
    }

    /// Frees plans and buffers of transformations beyond their share of the capacity. The share is theirs alone, so
    /// that neither they nor the automaton evict each other.
    fn trim_transformers(&mut self) {
        let share = self.tuning.cache_bytes / TRANSFORM_CACHE_FRACTION;
        let bytes: usize = self.segments.iter().map(|remembered| remembered.transformer.bytes()).sum();
        if bytes > share {
            let each = share / self.segments.len();
            self.segments.iter_mut().for_each(|remembered| remembered.transformer.trim(each));
        }
    }

    /// Forgets what caches hold, as at the start.
    pub fn clear(&mut self) {
        for remembered in &mut self.segments {
            remembered.dfa.clear();
            remembered.transformer.trim(0);
        }
    }

    pub fn cache_stats(&self) -> CacheStats {
        self.segments.iter().fold(CacheStats::default(), |sum, remembered| CacheStats {
            bytes: sum.bytes + remembered.cache_bytes(),
            states: sum.states + remembered.dfa.states(),
            clears: sum.clears + remembered.dfa.clears(),
        })
    }
}

/// Judges candidates by the document at hand.
struct OnDocument<'a> {
    view: View<'a>,
    /// None if the document was matched without the DFA.
    found: Option<Found<'a>>,
    settler: &'a mut Settler,
    verifier: Verifier<'a>,
}

impl Judge for OnDocument<'_> {
    fn verify(&mut self, query: u32) -> bool {
        self.verifier.matches(self.view.query_twig[query as usize])
    }

    fn expect(&mut self, row: &Unsettled) {
        self.settler.expect(row);
    }

    fn settle(&mut self, row: &Unsettled) -> Option<bool> {
        self.settler.settle(row, self.found?)
    }
}

/// A part of the generation that a batch is matched against.
struct Active<'g> {
    at: usize,
    part: &'g Part,
    view: View<'g>,
    tenant: u32,
    base: u32,
}
