//! What a batch of messages is matched against: segments, less what was removed.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::segment::format::columns::View;
use crate::segment::format::file::Segment;

/// A segment as a generation sees it.
#[derive(Clone)]
pub struct Part {
    pub segment: Arc<Segment>,
    tenants: Arc<Tenants>,
    /// A bit per target that was removed, and per query left with no target. Empty if none.
    dead_targets: Arc<Vec<u64>>,
    dead_queries: Arc<Vec<u64>>,
    removed: usize,
}

/// The tenants of a segment.
#[derive(Default)]
struct Tenants {
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u32>,
}

impl Part {
    pub fn new(segment: Arc<Segment>) -> Part {
        let view = segment.view();
        let mut tenants = Tenants::default();
        let mut start = 0;
        for (tenant, &end) in view.tenant_ends.iter().enumerate() {
            let name: Arc<str> = String::from_utf8_lossy(&view.tenant_bytes[start..end as usize]).into();
            tenants.names.push(name.clone());
            tenants.numbers.insert(name, tenant as u32);
            start = end as usize;
        }
        let none = Arc::new(Vec::new());
        Part {
            segment,
            tenants: Arc::new(tenants),
            dead_targets: none.clone(),
            dead_queries: none,
            removed: 0,
        }
    }

    /// The number of a tenant, which is also its root in the trie.
    pub fn tenant(&self, name: &str) -> Option<u32> {
        self.tenants.numbers.get(name).copied()
    }

    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.names.iter().map(|name| &**name)
    }

    pub fn dead_queries(&self) -> &[u64] {
        &self.dead_queries
    }

    /// Targets that are left.
    pub fn live(&self) -> usize {
        self.segment.view().target.len() - self.removed
    }

    /// Queries that have a target left.
    pub fn live_queries(&self) -> usize {
        let dead: u32 = self.dead_queries.iter().map(|word| word.count_ones()).sum();
        self.segment.view().queries() - dead as usize
    }

    /// The places of removed targets, for the manifest.
    pub fn removed(&self) -> Vec<u32> {
        crate::util::bitset::set_bits(&self.dead_targets).collect()
    }

    /// The place of a live target.
    pub fn find(&self, target: u64) -> Option<u32> {
        let place = self.segment.view().target.binary_search(&target).ok()?;
        (!bit(&self.dead_targets, place as u32)).then_some(place as u32)
    }

    /// Removes targets by place.
    pub fn remove(&mut self, places: &[u32]) {
        if places.is_empty() {
            return;
        }
        let segment = self.segment.clone();
        let view = segment.view();
        let dead_targets = Arc::make_mut(&mut self.dead_targets);
        dead_targets.resize(view.target.len().div_ceil(64), 0);
        for &place in places {
            let word = &mut dead_targets[place as usize / 64];
            self.removed += (*word >> (place % 64) & 1 == 0) as usize;
            *word |= 1 << (place % 64);
        }
        let dead_queries = Arc::make_mut(&mut self.dead_queries);
        dead_queries.resize(view.queries().div_ceil(64), 0);
        // Many of them may be of one query: its targets are looked through once.
        let mut queries: Vec<u32> = places.iter().map(|&place| view.target_query[place as usize]).collect();
        queries.sort_unstable();
        queries.dedup();
        for query in queries {
            if view.targets_of(query).iter().all(|&place| bit(dead_targets, place)) {
                dead_queries[query as usize / 64] |= 1 << (query % 64);
            }
        }
    }

    /// The live targets of a query.
    pub fn targets(&self, query: u32) -> impl Iterator<Item = u64> {
        let view = self.segment.view();
        view.targets_of(query)
            .iter()
            .filter(|&&place| !bit(&self.dead_targets, place))
            .map(move |&place| view.target[place as usize])
    }

    /// The tenant of a query.
    pub fn tenant_of(&self, query: u32) -> &str {
        let view = self.segment.view();
        let tenant = view.query_tenant.get(query as usize).copied().unwrap_or(0);
        self.tenants.names.get(tenant as usize).map_or("", |name| name)
    }
}

fn bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
}

/// A numbered, immutable set of parts. Queries are numbered through all of them.
#[derive(Clone, Default)]
pub struct Generation {
    pub number: u64,
    parts: Vec<Part>,
    bases: Vec<u32>,
}

impl Generation {
    pub fn new(number: u64, parts: Vec<Part>) -> Generation {
        let mut next = 0;
        let bases = parts
            .iter()
            .map(|part| {
                let base = next;
                next += part.segment.view().queries() as u32;
                base
            })
            .collect();
        Generation { number, parts, bases }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The number of a part's first query.
    pub fn base(&self, part: usize) -> u32 {
        self.bases[part]
    }

    /// The part a query belongs to, and its number there.
    fn locate(&self, query: u32, views: &[View<'_>]) -> Option<(usize, u32)> {
        let part = self.bases.partition_point(|&base| base <= query).checked_sub(1)?;
        let local = query - self.bases[part];
        ((local as usize) < views[part].queries()).then_some((part, local))
    }

    /// The live targets of several queries, ascending. Looks at each segment's columns once.
    pub fn targets_of(&self, queries: &[u32]) -> Vec<u64> {
        let views: Vec<View<'_>> = self.parts.iter().map(|part| part.segment.view()).collect();
        let mut targets = Vec::with_capacity(queries.len());
        for &query in queries {
            let Some((at, query)) = self.locate(query, &views) else {
                continue;
            };
            let places = views[at].targets_of(query).iter();
            let live = places.filter(|&&place| !bit(&self.parts[at].dead_targets, place));
            targets.extend(live.map(|&place| views[at].target[place as usize]));
        }
        targets.sort_unstable();
        targets
    }

    pub fn live(&self) -> usize {
        self.parts.iter().map(Part::live).sum()
    }
}
