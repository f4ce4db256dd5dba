//! The batch API: messages × generation → matches, selected nodes or outputs. One matcher serves one thread.
//!
//! For each message: read it; for each segment run the automaton, collect candidates, settle or verify them.

mod pairs;
mod segment_state;
mod visit;

use std::sync::Arc;

use segment_state::{SegmentState, Slot};
use visit::by_shard;

use crate::data::{DataSets, Records};
use crate::document::{Document, Message, Reader, Vocabulary};
use crate::engine::active_part::ActivePart;
use crate::engine::cache_stats::CacheStats;
use crate::engine::generation::Generation;
use crate::engine::joins::{SegmentJoins, add_records};
use crate::engine::local_data::name_causes;
use crate::engine::shards::{Router, ShardSet};
use crate::error::ReadError;
use crate::ids::GenerationQuery;
use crate::limits::Limits;
use crate::matching::automaton::dfa::{Dfa, Trace};
use crate::matching::automaton::nfa::Nfa;
use crate::matching::budget::{Budget, WorkLimit};
use crate::matching::candidates::blocks::{Blocks, RowBlock};
use crate::matching::candidates::{CandidateScratch, Collector};
use crate::matching::findings::Ranks;
use crate::matching::joiner::Joiner;
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::decide::TwigDecider;
use crate::matching::twigs::occurrences::TracedDocument;
use crate::matching::twigs::verify::{Trees, Verifier};
use crate::matching::work::Work;
use crate::query::QueryId;
use crate::transform::{Conformance, MatchedMessage, OperatorReport, Outputs, Schema, Transformer};
use crate::tuning::{TRANSFORM_CACHE_FRACTION, Tuning};

/// The scratch space and the caches of one thread. Segments are shared and never change. What a matcher caches for a
/// segment lives as long as the generation has the segment.
pub struct Matcher {
    reader: Reader,
    document: Document,
    segments: Vec<Slot>,
    /// Of a generation with several shards.
    router: Option<Router>,
    visited: ShardSet,
    /// Counts uses of shards.
    clock: u64,
    generation: Option<u64>,
    tuning: Tuning,
    nfa: Nfa,
    ranks: Ranks,
    by_name: ElementsByName,
    /// The rows of a message that was matched without a cache.
    blocks: Blocks,
    candidates: CandidateScratch,
    conformance: Conformance,
    /// The records of local data that messages met, and the joins that find them.
    records: Records,
    joiner: Joiner,
    /// The local data that they are prepared for.
    attached: Option<Arc<DataSets>>,
}

/// The queries that match a message, and the work of finding them.
#[derive(Default)]
pub struct Matches {
    /// Numbers of the generation's queries, in no particular order.
    pub queries: Vec<GenerationQuery>,
    /// Queries that exceeded the work limit: it is not known whether they match.
    pub failed: Vec<GenerationQuery>,
    pub work: Work,
    /// References to entities that were not read and left out.
    pub skipped_entities: u32,
}

impl Matches {
    fn clear(&mut self) {
        self.queries.clear();
        self.failed.clear();
        self.work = Work::default();
    }
}

/// The nodes that `select_batch` selects in one message.
pub struct SelectedNodes<'a, T> {
    pub document: &'a Document,
    pub vocabulary: &'a Vocabulary,
    /// By query, ascending.
    pub found: Vec<(GenerationQuery, T)>,
    /// Queries that exceeded the work limit.
    pub failed: &'a [GenerationQuery],
}

impl Matcher {
    pub fn new(tuning: Tuning) -> Matcher {
        Matcher {
            reader: Reader::new(),
            document: Document::default(),
            segments: Vec::new(),
            router: None,
            visited: ShardSet::default(),
            clock: 0,
            generation: None,
            tuning,
            nfa: Nfa::default(),
            ranks: Ranks::default(),
            by_name: ElementsByName::default(),
            blocks: Blocks::default(),
            candidates: CandidateScratch::default(),
            conformance: Conformance::default(),
            records: Records::default(),
            joiner: Joiner::default(),
            attached: None,
        }
    }

    /// Matches messages one by one and gives each outcome to `sink`.
    pub fn match_batch<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item: Into<Message<'m>>>,
        limits: &Limits,
        mut sink: impl FnMut(Result<&Matches, ReadError>),
    ) {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        let mut matches = Matches::default();
        for message in messages {
            matches.clear();
            match self.read_and_route(&message.into(), limits, &active, generation, tenant) {
                Ok(()) => {
                    matches.skipped_entities = self.document.skipped_entities;
                    for shard in by_shard(&active) {
                        if self.open_shard(generation, shard) {
                            self.match_document(shard, limits, &mut matches);
                        }
                    }
                    sink(Ok(&matches));
                }
                Err(error) => sink(Err(error)),
            }
        }
    }

    /// Matches messages and gives `sink`, per message, each matching query with the result of `select` on its twig.
    pub fn select_batch<'m, T>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item: Into<Message<'m>>>,
        limits: &Limits,
        select: impl Fn(&mut Verifier<'_>, u32) -> Result<T, WorkLimit>,
        mut sink: impl FnMut(Result<SelectedNodes<'_, T>, ReadError>),
    ) {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        let mut matches = Matches::default();
        for message in messages {
            matches.clear();
            if let Err(error) = self.read_and_route(&message.into(), limits, &active, generation, tenant) {
                sink(Err(error));
                continue;
            }
            let mut found = Vec::new();
            for shard in by_shard(&active) {
                if !self.open_shard(generation, shard) {
                    continue;
                }
                let first = matches.queries.len();
                self.match_document(shard, limits, &mut matches);
                matches.queries[first..].sort_unstable();
                let mut rest = &matches.queries[first..];
                for part @ ActivePart { at, first_query, .. } in shard {
                    let own = part.take_queries(&mut rest);
                    let SegmentState { segment, names, memo, compiled, .. } = self.segments[*at].open();
                    compiled.trim();
                    own.iter()
                        .for_each(|query| compiled.prepare(segment, names, query.in_segment(*first_query)));
                    memo.clear();
                    for &query in own {
                        let offset = compiled.offset(query.in_segment(*first_query)).expect("prepared");
                        let (words, vocabulary) = (compiled.words(), self.reader.vocabulary());
                        let (document, by_name) = (&self.document, &mut self.by_name);
                        let mut budget = Budget::new(limits.work);
                        let trees = Trees::new(document, vocabulary, names, &self.records);
                        let mut verifier = Verifier::new(words, trees, by_name, memo, &mut budget);
                        match select(&mut verifier, offset) {
                            Ok(selected) => found.push((query, selected)),
                            Err(WorkLimit) => matches.failed.push(query),
                        }
                    }
                    memo.clear();
                }
            }
            let (vocabulary, failed) = (self.reader.vocabulary(), matches.failed.as_slice());
            sink(Ok(SelectedNodes { document: &self.document, vocabulary, found, failed }));
        }
    }

    /// Matches messages and gives `sink`, per message, the outputs of matching transformations. Messages that conform
    /// to a schema are transformed by plans made for it.
    pub fn transform_batch<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item: Into<Message<'m>>>,
        limits: &Limits,
        schema: Option<&Arc<Schema>>,
        mut sink: impl FnMut(Result<(&Matches, &Outputs), ReadError>),
    ) {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        let (mut matches, mut outputs) = (Matches::default(), Outputs::default());
        for message in messages {
            matches.clear();
            outputs.clear();
            if let Err(error) = self.read_and_route(&message.into(), limits, &active, generation, tenant) {
                sink(Err(error));
                continue;
            }
            matches.skipped_entities = self.document.skipped_entities;
            let vocabulary = self.reader.vocabulary();
            let conforms =
                |schema: &&Arc<Schema>| self.conformance.conforms(schema, &self.document, vocabulary);
            let schema = schema.filter(conforms);
            for shard in by_shard(&active) {
                if !self.open_shard(generation, shard) {
                    continue;
                }
                let first = matches.queries.len();
                self.match_document(shard, limits, &mut matches);
                matches.queries[first..].sort_unstable();
                let mut rest = &matches.queries[first..];
                for active in shard {
                    let (own, first) = (active.take_queries(&mut rest), active.first_query);
                    let (transformer, matched) = self.matched(active);
                    let own = own.iter().map(|query| query.in_segment(first));
                    transformer.transform(matched, schema, own, first, limits, &mut outputs);
                }
            }
            self.trim_transformers();
            outputs.add_failed(&matches.failed, limits.work);
            name_causes(&mut outputs, generation, tenant);
            matches.queries.extend_from_slice(&matches.failed);
            sink(Ok((&matches, &outputs)));
        }
    }

    /// Which operators a transformation of the generation runs on a message; none if it does not have it.
    pub fn explain_transformation(
        &mut self,
        generation: &Generation,
        tenant: &str,
        query: QueryId,
        message: &Message<'_>,
        limits: &Limits,
        schema: Option<&Arc<Schema>>,
    ) -> Result<Vec<OperatorReport>, ReadError> {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        self.read_and_route(message, limits, &active, generation, tenant)?;
        let vocabulary = self.reader.vocabulary();
        let schema = schema.filter(|schema| self.conformance.conforms(schema, &self.document, vocabulary));
        for shard in by_shard(&active) {
            if !self.open_shard(generation, shard) {
                continue;
            }
            self.match_document(shard, limits, &mut Matches::default());
            for active in shard {
                if let Some(query) = active.view.find_query(active.tenant, query) {
                    let (_, matched) = self.matched(active);
                    return Ok(Transformer::explain(matched, schema, query, limits));
                }
            }
        }
        Ok(Vec::new())
    }

    /// The message that was matched last, as a segment's transformations need it.
    fn matched(&mut self, active: &ActivePart<'_>) -> (&mut Transformer, MatchedMessage<'_>) {
        let SegmentState { segment, names, cache, scratch, memo, transformer, traced, .. } =
            self.segments[active.at].open();
        let matched = MatchedMessage {
            segment,
            tenant: active.tenant,
            trees: Trees::new(&self.document, self.reader.vocabulary(), names, &self.records),
            trace: traced.then_some(Trace::new(cache, scratch)),
            by_name: &mut self.by_name,
            memo,
        };
        (transformer, matched)
    }

    /// The parts that hold queries of a tenant.
    fn active<'g>(&self, generation: &'g Generation, tenant: &str) -> Vec<ActivePart<'g>> {
        let parts = generation.parts().iter().enumerate();
        parts
            .filter_map(|(at, part)| {
                let tenant = part.tenant(tenant)?;
                Some(ActivePart {
                    at,
                    part,
                    view: part.segment.view(),
                    tenant,
                    first_query: generation.first_query(at),
                })
            })
            .collect()
    }

    /// Prepares joins with the local data of a tenant; does nothing where it is that of the last batch.
    fn attach_data(&mut self, generation: &Generation, tenant: &str) {
        let sets = generation.data(tenant);
        if self.attached.as_ref().is_some_and(|attached| Arc::ptr_eq(attached, sets)) {
            return;
        }
        self.states().for_each(|state| state.names.attach(state.segment.view(), sets));
        self.records.attach(sets);
        self.joiner.clear();
        for Slot { segment, joins, .. } in &mut self.segments {
            *joins = SegmentJoins::find(segment, &mut self.joiner, sets);
        }
        self.attached = Some(sets.clone());
    }

    /// Reads a message, its envelope if a query may ask for it, and the records that it meets.
    fn read(
        &mut self,
        message: &Message<'_>,
        limits: &Limits,
        active: &[ActivePart<'_>],
        generation: &Generation,
    ) -> Result<(), ReadError> {
        self.records.renew();
        self.reader.read(message.bytes, limits, &mut self.document)?;
        if let Some(envelope) = &message.envelope
            && (generation.shards().is_some_and(|shards| shards.asks_envelope)
                || active.iter().any(|active| active.part.asks_envelope()))
        {
            self.reader.add_envelope(envelope, &mut self.document);
        }
        let (segments, document) = (&self.segments, &mut self.document);
        let joins = active.iter().map(|active| (&active.view, active.tenant, &segments[active.at].joins));
        let (records, limit) = (&self.records, limits.tuples);
        add_records(joins, &mut self.joiner, &mut self.reader, document, records, limit)
    }

    fn match_document(&mut self, active: &[ActivePart<'_>], limits: &Limits, matches: &mut Matches) {
        let mut budget = Budget::new(limits.work);
        self.ranks.reset();
        self.by_name.reset();
        let cache_bytes_of = |slots: &[Slot]| {
            slots.iter().filter_map(|slot| slot.state.as_deref()).map(SegmentState::cache_bytes).sum()
        };
        let mut bytes_of_all: usize = cache_bytes_of(&self.segments);
        if bytes_of_all > self.tuning.cache_bytes {
            self.states().for_each(|state| state.cache.clear());
            bytes_of_all = cache_bytes_of(&self.segments);
        }
        for ActivePart { at, part, view, tenant, first_query } in active {
            let Slot { state, joins, .. } = &mut self.segments[*at];
            let SegmentState { names, cache, scratch, findings, reported, memo, settler, traced, .. } =
                state.as_deref_mut().expect("opened for the message");
            let bytes_of_others = bytes_of_all - cache.bytes();
            if names.update(self.reader.vocabulary()) {
                cache.clear();
            }
            cache.set_capacity(self.tuning.cache_bytes.saturating_sub(bytes_of_others));
            let dfa = Dfa { view, root: tenant.root(), names };
            let found = dfa.find(&self.document, &mut self.ranks, findings, cache, scratch);
            *traced = found.is_ok();
            if found.is_err() {
                // This message is matched without a cache; the next one starts with an empty cache.
                findings.clear();
                self.nfa.find(*view, tenant.root(), &self.document, names, &mut self.ranks, findings);
            }
            bytes_of_all = bytes_of_others + cache.bytes();
            let trace = Trace::new(cache, scratch);
            let uncached_block: RowBlock;
            let (blocks, wanted) = match found {
                Ok(()) => trace.blocks(),
                Err(_) => {
                    self.blocks.clear();
                    uncached_block = self.blocks.store(view, findings.conditions.words());
                    (&self.blocks, std::slice::from_ref(&uncached_block))
                }
            };
            findings.set_always();
            let decider = TwigDecider {
                view: *view,
                traced: found.is_ok().then_some(TracedDocument { document: &self.document, trace }),
                settler,
                verifier: Verifier::new(
                    view.twig,
                    Trees::new(&self.document, self.reader.vocabulary(), names, &self.records),
                    &mut self.by_name,
                    memo,
                    &mut budget,
                ),
            };
            let mut collector = Collector {
                view: *view,
                findings,
                removed: part.removed_queries(),
                reported,
                scratch: &mut self.candidates,
                verify_singly: self.tuning.verify_singly,
                decider,
                first_query: *first_query,
                matches: &mut matches.queries,
                failed: &mut matches.failed,
                work: &mut matches.work,
            };
            let first_match = collector.matches.len();
            collector.collect(*tenant, blocks, wanted);
            collector.verify_unserved(*tenant, &joins.unserved, first_match);
            matches.work.looked_up += memo.lookups();
            matches.work.uncached |= !*traced as u64;
            settler.reset();
            findings.clear();
            memo.clear();
        }
        matches.work.steps += budget.steps();
        // Of the message as a whole, not of one shard.
        (matches.work.probes, matches.work.records) = (self.joiner.work.probes, self.joiner.work.records);
    }

    /// Frees plans and buffers of transformations beyond their share of the capacity. The share is theirs alone, so
    /// that neither they nor the automaton evict each other.
    fn trim_transformers(&mut self) {
        let share = self.tuning.cache_bytes / TRANSFORM_CACHE_FRACTION;
        let bytes: usize = self.states().map(|state| state.transformer.bytes()).sum();
        if bytes > share {
            let each = share / self.states().count();
            self.states().for_each(|state| state.transformer.trim(each));
        }
    }

    /// Clears all caches.
    pub fn clear(&mut self) {
        for state in self.states() {
            state.cache.clear();
            state.transformer.trim(0);
        }
    }

    /// Those that are made.
    fn states(&mut self) -> impl Iterator<Item = &mut SegmentState> {
        self.segments.iter_mut().filter_map(|slot| slot.state.as_deref_mut())
    }

    pub fn cache_stats(&self) -> CacheStats {
        let mut stats = CacheStats::default();
        let states = self.segments.iter().filter_map(|slot| slot.state.as_deref());
        states.for_each(|state| stats += state.cache_stats());
        stats.bytes.records = self.records.bytes() + self.joiner.bytes();
        stats
    }
}
