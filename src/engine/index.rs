//! The index: the set of standing queries as it changes.
//!
//! Changes go to new segments, as in search engines: inserts to a small new one, removals to the tombstones of
//! the segment concerned. Segments of about the same size are merged in tiers, so a target is compiled again
//! about log₄ n times in all. Messages are matched against a `Generation`, which never changes.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::data::{DataSet, TenantData};
use crate::engine::expected_candidates::ExpectedCandidates;
use crate::engine::generation::{Generation, Part};
use crate::engine::local_data;
use crate::engine::parse_ahead::parse_ahead;
use crate::engine::sample::Sample;
use crate::error::{GenerationError, QueryError};
use crate::ids::SegmentQuery;
use crate::query::{Namespaces, Query, QueryId, StorableQuery, parse, parse_storable};
use crate::segment::build::Builder;
use crate::tuning::SEGMENT_FAN_IN;

/// A target's query that is not compiled yet.
struct Pending {
    tenant: String,
    query: StorableQuery,
}

/// The set of standing queries, as it changes.
#[derive(Default)]
pub struct Index {
    generation: Arc<Generation>,
    pending: FxHashMap<u64, Pending>,
    /// Places of targets to remove, per part of the generation.
    removed: Vec<FxHashSet<u32>>,
    /// Whether there is something to commit.
    changed: bool,
    pub sample: Sample,
}

/// A row of a load: a query for a target.
#[derive(Clone, Copy)]
pub struct Subscription<'a> {
    pub target: u64,
    pub tenant: &'a str,
    pub query: &'a str,
    /// The prefixes of the query.
    pub namespaces: &'a Namespaces,
}

impl<'a> Subscription<'a> {
    /// Of the tenant `""`, without prefixes.
    pub fn new(target: u64, query: &'a str) -> Subscription<'a> {
        static NONE: Namespaces = Namespaces::new();
        Subscription { target, tenant: "", query, namespaces: &NONE }
    }
}

/// A row of a load that was refused.
pub struct Refused {
    pub row: usize,
    pub error: QueryError,
}

impl Index {
    pub fn new() -> Index {
        Index::default()
    }

    /// An index that continues a generation, as a snapshot holds one.
    pub fn of(generation: Generation) -> Index {
        Index { generation: Arc::new(generation), ..Index::default() }
    }

    /// An empty index with local data.
    pub fn with_data(data: Arc<TenantData>) -> Index {
        Index::of(Generation::default().with_data(data))
    }

    /// Attaches local data that queries of a tenant may name, or replaces it. Messages that are matched from now on
    /// see it.
    pub fn attach(&mut self, tenant: &str, name: &str, set: Arc<DataSet>) -> Result<(), GenerationError> {
        self.commit()?;
        let data = Arc::new(self.generation.tenant_data().with(tenant, name, set));
        let mut generation = Generation::clone(&self.generation).with_data(data);
        generation.number += 1;
        self.generation = Arc::new(generation);
        Ok(())
    }

    /// Switches to another generation, with the same local data, and drops uncommitted changes.
    pub fn switch_to(&mut self, generation: Generation) {
        self.generation = Arc::new(generation.with_data(self.generation.tenant_data().clone()));
        self.drop_changes();
    }

    /// Replaces the local data of all tenants. The generation keeps its number: its queries are the same.
    pub fn replace_data(&mut self, data: TenantData) -> Result<(), GenerationError> {
        self.commit()?;
        let data = Arc::new(data.sharing(self.generation.tenant_data()));
        self.generation = Arc::new(Generation::clone(&self.generation).with_data(data));
        Ok(())
    }

    /// Drops uncommitted changes.
    pub fn drop_changes(&mut self) {
        self.pending.clear();
        self.removed.clear();
        self.changed = false;
    }

    /// Registers a target with its query. A target that exists gets the new query.
    pub fn insert(
        &mut self,
        target: u64,
        tenant: &str,
        text: &str,
        namespaces: &Namespaces,
    ) -> Result<QueryId, QueryError> {
        let query = parse_storable(text, namespaces)?;
        local_data::check(&query.data, &query.query, self.generation.data(tenant))?;
        let id = query.id;
        self.remove(target);
        self.pending.insert(target, Pending { tenant: tenant.to_string(), query });
        self.changed = true;
        Ok(id)
    }

    /// Removes a target; false if it does not exist.
    pub fn remove(&mut self, target: u64) -> bool {
        if self.pending.remove(&target).is_some() {
            return true;
        }
        let Some((part, place)) = self.find(target) else {
            return false;
        };
        self.removed.resize(self.generation.parts().len(), FxHashSet::default());
        let removed = self.removed[part].insert(place);
        self.changed |= removed;
        removed
    }

    fn find(&self, target: u64) -> Option<(usize, u32)> {
        let parts = self.generation.parts().iter().enumerate();
        parts.rev().find_map(|(at, part)| Some((at, part.find(target)?)))
    }

    /// Registers many at once. Refused rows are reported, the rest take effect at once. If there are too many
    /// for a segment, nothing changes.
    pub fn load<'a>(
        &mut self,
        rows: impl Iterator<Item = Subscription<'a>> + Clone + Send,
    ) -> Result<Vec<Refused>, GenerationError> {
        let data = self.generation.tenant_data().clone();
        self.load_checked(rows, |row, query| {
            local_data::check(&query.data, &query.query, data.of(row.tenant))
        })
    }

    /// As `load`, for queries that were checked when they were registered: their local data need not be attached.
    pub fn load_registered<'a>(
        &mut self,
        rows: impl Iterator<Item = Subscription<'a>> + Clone + Send,
    ) -> Result<Vec<Refused>, GenerationError> {
        self.load_checked(rows, |_, _| Ok(()))
    }

    fn load_checked<'a>(
        &mut self,
        rows: impl Iterator<Item = Subscription<'a>> + Clone + Send,
        check: impl Fn(&Subscription<'a>, &StorableQuery) -> Result<(), QueryError> + Sync,
    ) -> Result<Vec<Refused>, GenerationError> {
        self.commit()?;
        let tenants = distinct(rows.clone().map(|row| row.tenant));
        let repeated = repeated(rows.clone().map(|row| row.target));
        let mut builder = Builder::new(tenants, rows.size_hint().0);
        let mut refused = Vec::new();
        let mut seen = FxHashSet::default();
        let parse = |(_, row): &(usize, Subscription<'a>)| {
            let query = parse_storable(row.query, row.namespaces)?;
            check(row, &query)?;
            Ok::<_, QueryError>(query)
        };
        parse_ahead(rows.enumerate(), parse, |&(row, Subscription { target, tenant, .. }), parsed| {
            match parsed {
                Err(error) => refused.push(Refused { row, error: error.clone() }),
                Ok(_) if repeated.contains(&target) && !seen.insert(target) => {
                    let reason = format!("target {target} is in this load already; give each target once");
                    let error = QueryError {
                        code: "duplicate-target",
                        reason,
                        position: Default::default(),
                        exceeded: None,
                    };
                    refused.push(Refused { row, error });
                }
                Ok(query) => {
                    if self.generation.live() > 0 {
                        self.remove(target);
                    }
                    builder.add(target, tenant, &query.query, query.id, &query.canonical);
                }
            }
        });
        if !builder.is_empty() {
            let advanced = self.freeze(builder).and_then(|part| self.advance(Some(part)));
            advanced.inspect_err(|_| self.drop_changes())?;
        }
        Ok(refused)
    }

    /// Makes inserts and removals visible, and returns the generation to match against.
    pub fn commit(&mut self) -> Result<Arc<Generation>, GenerationError> {
        if !self.changed {
            return Ok(self.generation.clone());
        }
        let mut added = None;
        if !self.pending.is_empty() {
            let mut pending: Vec<(&u64, &Pending)> = self.pending.iter().collect();
            pending.sort_unstable_by_key(|(target, _)| **target);
            let mut builder =
                Builder::new(distinct(pending.iter().map(|(_, one)| one.tenant.as_str())), pending.len());
            for (target, one) in pending {
                let StorableQuery { query, canonical, id, .. } = &one.query;
                builder.add(*target, &one.tenant, query, *id, canonical);
            }
            added = Some(self.freeze(builder)?);
        }
        self.advance(added)?;
        Ok(self.generation.clone())
    }

    /// Merges all segments into one, with access tests chosen by the current sample.
    pub fn merge(&mut self) -> Result<Arc<Generation>, GenerationError> {
        self.commit()?;
        if !self.generation.parts().is_empty() {
            let merged = self.merged(self.generation.parts())?;
            self.generation = Arc::new(self.next(vec![merged])?);
        }
        Ok(self.generation.clone())
    }

    /// Compiles the segment again whose candidates fall most, if that saves at least a share of those of all segments.
    /// Whether there was one.
    pub fn refile(&mut self, least_share: f64) -> Result<bool, GenerationError> {
        self.commit()?;
        let mut parts = self.generation.parts().to_vec();
        let estimates: Vec<ExpectedCandidates> = parts
            .iter()
            .map(|part| {
                let view = part.segment.view();
                ExpectedCandidates::of(view, &self.sample.measure(view, |tenant| part.tenant(tenant)))
            })
            .collect();
        let all: f64 = estimates.iter().map(|estimate| estimate.filed).sum();
        let most = (0..parts.len()).max_by(|&a, &b| estimates[a].saved.total_cmp(&estimates[b].saved));
        let Some(most) =
            most.filter(|&at| estimates[at].saved > 0.0 && estimates[at].saved >= least_share * all)
        else {
            return Ok(false);
        };
        parts[most] = self.merged(std::slice::from_ref(&parts[most]))?;
        self.generation = Arc::new(self.next(parts)?);
        Ok(true)
    }

    /// The next generation, of other parts.
    fn next(&self, parts: Vec<Part>) -> Result<Generation, GenerationError> {
        self.generation.check_open()?;
        let next = Generation::new(self.generation.number + 1, parts)?;
        Ok(next.with_data(self.generation.tenant_data().clone()))
    }

    fn freeze(&self, builder: Builder) -> Result<Part, GenerationError> {
        let tenants = builder.tenants();
        let segment = builder.freeze(|view| self.sample.measure(view, |name| tenants.get(name).copied()))?;
        Ok(Part::new(Arc::new(segment)))
    }

    /// Switches to the next generation: without the removed targets, with an added part, merged in tiers.
    fn advance(&mut self, added: Option<Part>) -> Result<(), GenerationError> {
        let mut parts = self.generation.parts().to_vec();
        for (part, places) in parts.iter_mut().zip(&self.removed) {
            part.remove(&places.iter().copied().collect::<Vec<_>>());
        }
        parts.extend(added);
        parts.retain(|part| part.live() > 0);
        self.merge_tiers(&mut parts)?;
        self.generation = Arc::new(self.next(parts)?);
        self.drop_changes();
        Ok(())
    }

    /// Merges each tier of `SEGMENT_FAN_IN` segments of about the same size, and rewrites segments of which less than
    /// half is left.
    fn merge_tiers(&self, parts: &mut Vec<Part>) -> Result<(), GenerationError> {
        for part in parts.iter_mut() {
            if part.live() * 2 < part.segment.view().target.len() {
                *part = self.merged(std::slice::from_ref(part))?;
            }
        }
        loop {
            let mut tiers: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
            for (at, part) in parts.iter().enumerate() {
                tiers.entry(part.live().max(1).ilog(SEGMENT_FAN_IN)).or_default().push(at);
            }
            let Some(full) = tiers.into_values().filter(|tier| tier.len() >= SEGMENT_FAN_IN).min() else {
                return Ok(());
            };
            let merged = self.merged(&full.iter().map(|&at| parts[at].clone()).collect::<Vec<_>>())?;
            let mut at = 0;
            parts.retain(|_| {
                at += 1;
                !full.contains(&(at - 1))
            });
            parts.push(merged);
        }
    }

    /// One part with all live targets of several.
    fn merged(&self, parts: &[Part]) -> Result<Part, GenerationError> {
        let mut builder =
            Builder::new(distinct(parts.iter().flat_map(Part::tenants)), parts.iter().map(Part::live).sum());
        let queries = parts.iter().flat_map(|part| {
            let queries = part.segment.view().all_queries();
            queries.filter(|&query| part.targets(query).next().is_some()).map(move |query| (part, query))
        });
        let mut damaged = None;
        parse_ahead(queries, parse_again, |&(part, query), parsed| match parsed {
            Ok((text, parsed)) => {
                let (id, tenant) = (part.segment.query_id(query), part.tenant_of(query));
                part.targets(query).for_each(|target| builder.add(target, tenant, parsed, id, text));
            }
            Err(error) => damaged = Some(GenerationError::clone(error)),
        });
        match damaged {
            Some(error) => Err(error),
            None => self.freeze(builder),
        }
    }

    /// The newest generation, without uncommitted changes.
    pub fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }
}

/// The canonical text of a query in a segment, and the query.
fn parse_again<'p>(&(part, query): &(&'p Part, SegmentQuery)) -> Result<(&'p str, Query), GenerationError> {
    let text = part.segment.text(query)?;
    // A canonical text always parses: the kernel wrote it.
    Ok((text, parse(text, &Namespaces::default()).expect("a canonical text")))
}

/// The targets that occur more than once.
fn repeated(targets: impl Iterator<Item = u64>) -> FxHashSet<u64> {
    let mut targets: Vec<u64> = targets.collect();
    targets.sort_unstable();
    targets.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// Each tenant once, sorted.
fn distinct<'a>(tenants: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let mut distinct: Vec<String> =
        tenants.filter(|&tenant| seen.insert(tenant)).map(str::to_string).collect();
    distinct.sort_unstable();
    distinct
}
