//! A generation: segments, the tombstones of removed targets, and the local data that queries may name. A batch of messages is matched against one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::data::{DataSet, DataSets, TenantData};
use crate::engine::shards::{Routing, ShardSet};
use crate::error::{Exceeded, GenerationError};
use crate::ids::{GenerationQuery, SegmentQuery, TenantId};
use crate::query::envelope;
use crate::segment::format::columns::View;
use crate::segment::format::file::Segment;
use crate::segment::format::labels::has_label;
use crate::util::bitset::set_bit;

/// A segment as a generation sees it.
#[derive(Clone)]
pub struct Part {
    pub segment: Arc<Segment>,
    /// The shard that it belongs to.
    pub shard: u32,
    tenants: Arc<Tenants>,
    /// A bit per target that was removed, and per query left with no target. Empty if none.
    removed_targets: Arc<Vec<u64>>,
    removed_queries: Arc<Vec<u64>>,
    removed: usize,
    /// Whether a query of the segment asks for the envelope of a message.
    asks_envelope: bool,
}

/// The tenants of a segment.
#[derive(Default)]
struct Tenants {
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, TenantId>,
}

impl Part {
    pub fn new(segment: Arc<Segment>) -> Part {
        let view = segment.view();
        let mut tenants = Tenants::default();
        let mut start = 0;
        for (tenant, &end) in view.tenant_ends.iter().enumerate() {
            let name: Arc<str> = String::from_utf8_lossy(&view.tenant_bytes[start..end as usize]).into();
            tenants.names.push(name.clone());
            tenants.numbers.insert(name, TenantId::from(tenant));
            start = end as usize;
        }
        let none = Arc::new(Vec::new());
        let asks_envelope = has_label(view, &envelope::root());
        Part {
            asks_envelope,
            segment,
            shard: 0,
            tenants: Arc::new(tenants),
            removed_targets: none.clone(),
            removed_queries: none,
            removed: 0,
        }
    }

    pub fn asks_envelope(&self) -> bool {
        self.asks_envelope
    }

    pub fn tenant(&self, name: &str) -> Option<TenantId> {
        self.tenants.numbers.get(name).copied()
    }

    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.names.iter().map(|name| &**name)
    }

    pub fn removed_queries(&self) -> &[u64] {
        &self.removed_queries
    }

    /// Targets that are left.
    pub fn live(&self) -> usize {
        self.segment.view().target.len() - self.removed
    }

    /// Queries that have a target left.
    pub fn live_queries(&self) -> usize {
        let dead: u32 = self.removed_queries.iter().map(|word| word.count_ones()).sum();
        self.segment.view().queries() - dead as usize
    }

    /// The places of removed targets, for the manifest.
    pub fn removed(&self) -> Vec<u32> {
        crate::util::bitset::set_bits(&self.removed_targets).collect()
    }

    /// The place of a live target.
    pub fn find(&self, target: u64) -> Option<u32> {
        let place = self.segment.view().target.binary_search(&target).ok()?;
        (!bit(&self.removed_targets, place as u32)).then_some(place as u32)
    }

    /// Removes targets by place.
    pub fn remove(&mut self, places: &[u32]) {
        if places.is_empty() {
            return;
        }
        let segment = self.segment.clone();
        let view = segment.view();
        let removed_targets = Arc::make_mut(&mut self.removed_targets);
        removed_targets.resize(view.target.len().div_ceil(64), 0);
        for &place in places {
            let word = &mut removed_targets[place as usize / 64];
            self.removed += (*word >> (place % 64) & 1 == 0) as usize;
            *word |= 1 << (place % 64);
        }
        let removed_queries = Arc::make_mut(&mut self.removed_queries);
        removed_queries.resize(view.queries().div_ceil(64), 0);
        // Many of them may be of one query: its targets are looked through once.
        let mut queries: Vec<SegmentQuery> =
            places.iter().map(|&place| view.target_query[place as usize]).collect();
        queries.sort_unstable();
        queries.dedup();
        for query in queries {
            if view.targets_of(query).iter().all(|&place| bit(removed_targets, place)) {
                set_bit(removed_queries, query.index());
            }
        }
    }

    /// The live targets of a query.
    pub fn targets(&self, query: SegmentQuery) -> impl Iterator<Item = u64> {
        let view = self.segment.view();
        view.targets_of(query)
            .iter()
            .filter(|&&place| !bit(&self.removed_targets, place))
            .map(move |&place| view.target[place as usize])
    }

    /// The tenant of a query.
    pub fn tenant_of(&self, query: SegmentQuery) -> &str {
        let tenant = self.segment.view().tenant_of(query);
        self.tenants.names.get(tenant.index()).map_or("", |name| name)
    }
}

fn bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
}

/// Queries of a generation have 32-bit numbers.
const MOST_QUERIES: u64 = u32::MAX as u64;

/// A numbered, immutable set of parts. Queries are numbered through all of them.
#[derive(Clone, Default)]
pub struct Generation {
    pub number: u64,
    parts: Vec<Part>,
    /// The number of each part's first query.
    first_queries: Vec<GenerationQuery>,
    data: Arc<TenantData>,
    /// None if there is one shard.
    shards: Option<Arc<Shards>>,
}

/// The shards of a generation, of which some are open: their parts are there.
pub struct Shards {
    /// The name of each shard and how many queries it has.
    pub all: Vec<(String, u64)>,
    pub open: ShardSet,
    /// None: a message visits all.
    pub routing: Option<Arc<Routing>>,
    /// Whether a query of some shard asks for the envelope of a message.
    pub asks_envelope: bool,
}

impl Generation {
    /// Numbers the queries of all parts; fails if there are more than 32-bit numbers.
    pub fn new(number: u64, parts: Vec<Part>) -> Result<Generation, GenerationError> {
        let mut first_queries = Vec::with_capacity(parts.len());
        let mut queries = 0;
        for part in &parts {
            first_queries.push(GenerationQuery(queries as u32));
            queries += part.segment.view().queries() as u64;
            if queries > MOST_QUERIES {
                let reason =
                    format!("a generation holds at most {MOST_QUERIES} queries, this one has {queries}");
                let exceeded = Some(Exceeded { value: queries, limit: MOST_QUERIES });
                return Err(GenerationError { code: "generation-limit", reason, exceeded });
            }
        }
        Ok(Generation { number, parts, first_queries, data: Arc::default(), shards: None })
    }

    /// Of the parts of the shards that are open, in order. The numbers of their queries do not depend on which are.
    pub fn of_shards(number: u64, parts: Vec<Part>, shards: Shards) -> Result<Generation, GenerationError> {
        let queries: u64 = shards.all.iter().map(|(_, queries)| queries).sum();
        if queries > MOST_QUERIES {
            let reason = format!("a generation holds at most {MOST_QUERIES} queries, this one has {queries}");
            let exceeded = Some(Exceeded { value: queries, limit: MOST_QUERIES });
            return Err(GenerationError { code: "generation-limit", reason, exceeded });
        }
        let mut bases = Vec::with_capacity(shards.all.len());
        let mut base = 0;
        for (_, queries) in &shards.all {
            bases.push(base as u32);
            base += queries;
        }
        let mut first_queries = Vec::with_capacity(parts.len());
        for part in &parts {
            let next = &mut bases[part.shard as usize];
            first_queries.push(GenerationQuery(*next));
            *next += part.segment.view().queries() as u32;
        }
        Ok(Generation { number, parts, first_queries, data: Arc::default(), shards: Some(Arc::new(shards)) })
    }

    /// The shards, if there are several.
    pub fn shards(&self) -> Option<&Arc<Shards>> {
        self.shards.as_ref()
    }

    /// Refuses a generation of which only some shards are open: it cannot be changed or written as a whole.
    pub fn check_open(&self) -> Result<(), GenerationError> {
        let Some(shards) = &self.shards else { return Ok(()) };
        match (0..shards.all.len() as u32).find(|&shard| !shards.open.contains(shard)) {
            None => Ok(()),
            Some(closed) => {
                let reason = format!("shard {closed} is not open: open all shards to change the index");
                Err(GenerationError::new("shard-closed", reason))
            }
        }
    }

    /// Whether a query asks for the envelope of a message, also in shards that are not open.
    pub fn asks_envelope(&self) -> bool {
        self.shards.as_ref().is_some_and(|shards| shards.asks_envelope)
            || self.parts.iter().any(Part::asks_envelope)
    }

    /// The same with other local data.
    pub fn with_data(self, data: Arc<TenantData>) -> Generation {
        Generation { data, ..self }
    }

    /// The local data of all tenants.
    pub fn tenant_data(&self) -> &Arc<TenantData> {
        &self.data
    }

    /// The local data that queries of a tenant may name.
    pub fn data(&self, tenant: &str) -> &Arc<DataSets> {
        self.data.of(tenant)
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The number of a part's first query.
    pub fn first_query(&self, part: usize) -> GenerationQuery {
        self.first_queries[part]
    }

    /// The part a query belongs to, and its number there.
    fn locate(&self, query: GenerationQuery, views: &[View<'_>]) -> Option<(usize, SegmentQuery)> {
        let part = self.first_queries.partition_point(|&first| first <= query).checked_sub(1)?;
        let query = query.in_segment(self.first_queries[part]);
        (query.index() < views[part].queries()).then_some((part, query))
    }

    /// The canonical text of a query.
    pub fn text_of(&self, query: GenerationQuery) -> Option<&str> {
        let views: Vec<View<'_>> = self.parts.iter().map(|part| part.segment.view()).collect();
        let (part, query) = self.locate(query, &views)?;
        self.parts[part].segment.text(query).ok()
    }

    /// The live targets of several queries, ascending. Looks at each segment's columns once.
    pub fn targets_of(&self, queries: &[GenerationQuery]) -> Vec<u64> {
        let views: Vec<View<'_>> = self.parts.iter().map(|part| part.segment.view()).collect();
        let mut targets = Vec::with_capacity(queries.len());
        for &query in queries {
            let Some((at, query)) = self.locate(query, &views) else {
                continue;
            };
            let places = views[at].targets_of(query).iter();
            let live = places.filter(|&&place| !bit(&self.parts[at].removed_targets, place));
            targets.extend(live.map(|&place| views[at].target[place as usize]));
        }
        targets.sort_unstable();
        targets
    }

    pub fn live(&self) -> usize {
        self.parts.iter().map(Part::live).sum()
    }

    /// Refuses files that were cut short since they were opened.
    pub fn check_sizes(&self) -> Result<(), GenerationError> {
        self.data.all().try_for_each(DataSet::check_size)?;
        if let Some(routing) = self.shards.as_ref().and_then(|shards| shards.routing.as_ref()) {
            routing.check_size()?;
        }
        self.parts.iter().try_for_each(|part| part.segment.check_size())
    }

    /// Verifies all segments again, as when they were opened, and all texts.
    pub fn verify(&self) -> Result<(), GenerationError> {
        self.data.all().try_for_each(DataSet::verify)?;
        self.parts.iter().try_for_each(|part| part.segment.verify())
    }
}
