//! The routing index of a generation: the summaries of all its shards in one, so that a value of a message is looked up
//! once, and not once for each shard.
//!
//! Its paths are the queries of a segment: the automaton finds which of them a message has. Beside it a file holds what
//! each path leads to, and the keys of values; see `keys`.
//!
//! ```text
//! <hash>.segment, <hash>.texts     the paths
//! <hash>.routing                   tamisrou, format, numbers (u64 each): shards, shard bits, key bits, tenants, paths,
//!                                  words of lists, starts, entries
//!                                  lists (u64 words), starts (u32), entries (u32)
//! ```
//!
//! The lists hold for each tenant of the segment the set of the shards that all its messages visit, and the set of all
//! shards with queries of it; then for each path its base, the kinds of its values, three sets of shards (any node leads
//! there; some value does; a bound does), and the bounds. So a set has as many words as shards / 64.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::keys::{Keys, KeysBuilder};
use super::needs::{Kind, base_of, hash_of, is_linear, short_id};
use super::shard_set::ShardSet;
use super::summary::{KINDS, Summary};
use crate::error::{Exceeded, GenerationError};
use crate::ids::{SegmentQuery, SubjectId, TenantId, TrieNodeId};
use crate::query::{Namespaces, parse_storable};
use crate::segment::build::Builder;
use crate::segment::build::frequency::Measured;
use crate::segment::format::columns::View;
use crate::segment::format::file::Segment;
use crate::util::storage::{Storage, content_name};

const MAGIC: u64 = u64::from_le_bytes(*b"tamisrou");
const FORMAT: u64 = 1;
const HEADER: usize = 10;

/// The most shards of a generation.
pub const MOST_SHARDS: usize = 1 << 16;

/// What a path leads to.
pub struct RoutedPath {
    pub base: u64,
    /// Kinds of values that are looked up.
    pub kinds: u8,
    pub any: ShardSet,
    /// Shards that a value or a bound can lead to.
    pub valued: ShardSet,
    /// Shard, lower bound, upper bound.
    pub bounds: Vec<(u32, f64, f64)>,
}

impl RoutedPath {
    pub fn has_values(&self) -> bool {
        self.kinds != 0 || !self.bounds.is_empty()
    }
}

/// The shards of a tenant.
pub struct RoutedTenant {
    /// All its messages visit these.
    pub always: ShardSet,
    /// These have queries of it.
    pub all: ShardSet,
}

/// The routing index of a generation. It never changes.
pub struct Routing {
    segment: Arc<Segment>,
    table: Storage,
    name: String,
    shards: usize,
    shard_bits: u32,
    key_bits: u32,
    tenants: Vec<RoutedTenant>,
    tenant_ids: FxHashMap<String, TenantId>,
    paths: Vec<RoutedPath>,
    /// The paths that have values, by trie node: what is looked at there.
    valued: FxHashMap<TrieNodeId, Vec<(SubjectId, SegmentQuery)>>,
    starts: (usize, usize),
    entries: (usize, usize),
}

/// What a path leads to while the index is built.
#[derive(Default)]
struct NewPath {
    kinds: u8,
    any: Vec<u32>,
    valued: Vec<u32>,
    bounds: Vec<(u32, f64, f64)>,
}

impl Routing {
    /// The index of the summaries of all shards. All messages visit a shard without a summary.
    pub fn build(summaries: &[Option<Summary>], key_bits: u32) -> Result<Routing, GenerationError> {
        let shards = summaries.len();
        if shards > MOST_SHARDS {
            let reason = format!("a generation has at most {MOST_SHARDS} shards, this one has {shards}");
            let exceeded = Some(Exceeded { value: shards as u64, limit: MOST_SHARDS as u64 });
            return Err(GenerationError { code: "shards-limit", reason, exceeded });
        }
        let shard_bits = shards.next_power_of_two().trailing_zeros();
        let known = || summaries.iter().enumerate().filter_map(|(at, one)| Some((at as u32, one.as_ref()?)));
        let unknown: Vec<u32> =
            (0..shards as u32).filter(|&shard| summaries[shard as usize].is_none()).collect();
        let names: BTreeSet<&String> = known().flat_map(|(_, summary)| summary.tenants.keys()).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        let mut tenants: BTreeMap<&str, (Vec<u32>, Vec<u32>)> =
            names.iter().map(|name| (name.as_str(), (unknown.clone(), unknown.clone()))).collect();
        let mut paths: BTreeMap<(&str, &str), NewPath> = BTreeMap::new();
        let mut keys = KeysBuilder::default();
        for (shard, summary) in known() {
            for (name, needs) in &summary.tenants {
                let (always, all) = tenants.get_mut(name.as_str()).expect("collected above");
                all.push(shard);
                if needs.always {
                    always.push(shard);
                    // Nothing else of it is worth looking up.
                    continue;
                }
                for (path, one) in &needs.paths {
                    let new = paths.entry((name, path)).or_default();
                    if one.any {
                        new.any.push(shard);
                        continue;
                    }
                    new.valued.push(shard);
                    if one.has_bounds() {
                        new.bounds.push((shard, one.lower, one.upper));
                    }
                    for (kind, own) in KINDS.iter().zip(&one.keys).filter(|(_, own)| !own.is_empty()) {
                        new.kinds |= *kind as u8;
                        own.iter().for_each(|&key| keys.add(key, shard));
                    }
                }
            }
        }
        let mut builder = Builder::new(names.clone(), paths.len());
        let mut built: Vec<(&str, &str, NewPath)> = Vec::new();
        for ((tenant, path), new) in paths {
            match parse_storable(path, &Namespaces::default()) {
                Ok(query) if is_linear(path) && query.canonical == path => {
                    builder.add(built.len() as u64, tenant, &query.query, query.id, &query.canonical);
                    built.push((tenant, path, new));
                }
                _ => {
                    let (always, _) = tenants.get_mut(tenant).expect("collected above");
                    always.extend(new.any.iter().chain(&new.valued));
                }
            }
        }
        let segment = builder.freeze(|_| Measured::default())?;
        let view = segment.view();
        let empty = || ShardSet::new(shards);
        let set = |list: &[u32]| {
            let mut set = empty();
            list.iter().for_each(|&shard| set.insert(shard));
            set
        };
        let mut by_number: Vec<RoutedPath> = Vec::new();
        let mut order: Vec<(SegmentQuery, usize)> = Vec::new();
        for (target, &query) in view.target.iter().zip(view.target_query) {
            order.push((query, *target as usize));
        }
        order.sort_unstable();
        for &(query, at) in &order {
            let (tenant, path, new) = &built[at];
            let (always, _) = tenants.get_mut(tenant).expect("collected above");
            if query.index() >= view.exact() {
                // It is no single condition: its shards are always visited.
                always.extend(new.any.iter().chain(&new.valued));
            }
            let id = short_id(crate::query::QueryId::of(path));
            let mut bounds = new.bounds.clone();
            bounds.sort_unstable_by_key(|one| one.0);
            by_number.push(RoutedPath {
                base: base_of(hash_of(tenant.as_bytes()), id),
                kinds: new.kinds,
                any: set(&new.any),
                valued: set(&new.valued),
                bounds,
            });
        }
        let tenants: Vec<RoutedTenant> = names
            .iter()
            .map(|name| {
                let (always, all) = &tenants[name.as_str()];
                RoutedTenant { always: set(always), all: set(all) }
            })
            .collect();
        let (starts, entries) = keys.build(shard_bits, key_bits);
        let table = write(shards, shard_bits, key_bits, &tenants, &by_number, &starts, &entries);
        Routing::read(Arc::new(segment), Storage::Memory(table), None)
    }

    /// Opens the two files of a routing index, and verifies them.
    pub fn open(
        directory: &Path,
        segment: &str,
        table: &str,
        known: Option<&Arc<Routing>>,
    ) -> Result<Arc<Routing>, GenerationError> {
        if let Some(known) = known
            && known.name == table
            && known.segment.name() == segment
            && known.segment.is_mapped()
        {
            return Ok(known.clone());
        }
        let file = |name: &str, suffix: &str| directory.join(format!("{name}.{suffix}"));
        let paths = Segment::open(&file(segment, "segment"), &file(segment, "texts"))?;
        let path = file(table, "routing");
        let unreadable =
            |error| GenerationError::new("segment-damaged", format!("{}: {error}", path.display()));
        let storage = Storage::map(&path).map_err(unreadable)?;
        Routing::read(Arc::new(paths), storage, Some(table)).map(Arc::new)
    }

    fn read(
        segment: Arc<Segment>,
        table: Storage,
        expected: Option<&str>,
    ) -> Result<Routing, GenerationError> {
        let name = content_name(table.bytes());
        let damaged = || {
            let reason = format!("{name}.routing is not what was written: it is damaged or cut short");
            GenerationError::new("segment-damaged", reason)
        };
        if expected.is_some_and(|expected| expected != name) {
            return Err(damaged());
        }
        let words: &[u64] = bytemuck::try_cast_slice(table.bytes()).map_err(|_| damaged())?;
        let mut input = words.iter().copied();
        let mut next = || input.next().ok_or_else(damaged);
        if next()? != MAGIC || next()? != FORMAT {
            return Err(damaged());
        }
        let (shards, shard_bits, key_bits) = (next()? as usize, next()? as u32, next()? as u32);
        let (tenant_count, path_count) = (next()? as usize, next()? as usize);
        let (list_words, start_count, entry_count) = (next()? as usize, next()? as usize, next()? as usize);
        let set_of = |next: &mut dyn FnMut() -> Result<u64, GenerationError>| {
            (0..shards.div_ceil(64)).map(|_| next()).collect::<Result<Vec<u64>, _>>().map(ShardSet::of_words)
        };
        let mut tenants = Vec::new();
        for _ in 0..tenant_count {
            tenants.push(RoutedTenant { always: set_of(&mut next)?, all: set_of(&mut next)? });
        }
        let mut paths = Vec::new();
        for _ in 0..path_count {
            let (base, kinds) = (next()?, next()? as u8);
            let (any, valued) = (set_of(&mut next)?, set_of(&mut next)?);
            let mut bounds = Vec::new();
            for _ in 0..next()? {
                bounds.push((next()? as u32, f64::from_bits(next()?), f64::from_bits(next()?)));
            }
            paths.push(RoutedPath { base, kinds, any, valued, bounds });
        }
        let starts = (HEADER + list_words) * 8;
        let entries = starts + start_count * 4;
        let end = entries + entry_count * 4;
        let view = segment.view();
        if end > table.bytes().len()
            || path_count != view.queries()
            || tenants.len() != view.tenant_ends.len()
        {
            return Err(damaged());
        }
        let (valued, tenant_ids) = (valued_paths(view, &paths), tenant_ids(view));
        let routing = Routing {
            segment,
            name,
            shards,
            shard_bits,
            key_bits,
            tenants,
            tenant_ids,
            paths,
            valued,
            starts: (starts, entries),
            entries: (entries, end),
            table,
        };
        if routing.try_keys().is_none() {
            let reason = format!("{}.routing is damaged", routing.name);
            return Err(GenerationError::new("segment-damaged", reason));
        }
        Ok(routing)
    }

    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub fn table_name(&self) -> &str {
        &self.name
    }

    pub fn table_bytes(&self) -> &[u8] {
        self.table.bytes()
    }

    pub fn shards(&self) -> usize {
        self.shards
    }

    pub fn tenant(&self, name: &str) -> Option<(TenantId, &RoutedTenant)> {
        let id = *self.tenant_ids.get(name)?;
        Some((id, &self.tenants[id.index()]))
    }

    pub fn path(&self, number: SegmentQuery) -> &RoutedPath {
        &self.paths[number.index()]
    }

    /// What is looked at below a trie node.
    pub fn valued_at(&self, node: TrieNodeId) -> &[(SubjectId, SegmentQuery)] {
        self.valued.get(&node).map_or(&[], Vec::as_slice)
    }

    pub fn keys(&self) -> Keys<'_> {
        self.try_keys().expect("checked when it was opened")
    }

    fn try_keys(&self) -> Option<Keys<'_>> {
        let bytes = self.table.bytes();
        let starts = bytemuck::try_cast_slice(bytes.get(self.starts.0..self.starts.1)?).ok()?;
        let entries = bytemuck::try_cast_slice(bytes.get(self.entries.0..self.entries.1)?).ok()?;
        Keys::new(self.shard_bits, self.key_bits, starts, entries)
    }

    /// Refuses files that were cut short since they were opened.
    pub fn check_size(&self) -> Result<(), GenerationError> {
        self.segment.check_size()?;
        if self.table.is_whole() {
            return Ok(());
        }
        Err(GenerationError::new("segment-damaged", format!("{}.routing was cut short", self.name)))
    }
}

/// The paths with values, by the trie node of the element where they are looked at.
fn valued_paths(
    view: View<'_>,
    paths: &[RoutedPath],
) -> FxHashMap<TrieNodeId, Vec<(SubjectId, SegmentQuery)>> {
    let mut found: FxHashMap<TrieNodeId, Vec<(SubjectId, SegmentQuery)>> = FxHashMap::default();
    let mut add = |node: TrieNodeId, subject: SubjectId, condition: u32| {
        if (condition as usize) < view.exact() && paths[condition as usize].has_values() {
            found.entry(node).or_default().push((subject, SegmentQuery(condition)));
        }
    };
    for (node, condition) in view.node_condition.iter().enumerate() {
        let node = TrieNodeId::from(node);
        add(node, SubjectId::VALUE, condition.0);
        for entry in view.entries(node) {
            add(node, view.entry_subject[entry], view.entry_exists[entry].0);
        }
    }
    found
}

fn tenant_ids(view: View<'_>) -> FxHashMap<String, TenantId> {
    let mut start = 0;
    let name = |(id, &end): (usize, &u32)| {
        let text = String::from_utf8_lossy(&view.tenant_bytes[start..end as usize]).into_owned();
        start = end as usize;
        (text, TenantId::from(id))
    };
    view.tenant_ends.iter().enumerate().map(name).collect()
}

fn write(
    shards: usize,
    shard_bits: u32,
    key_bits: u32,
    tenants: &[RoutedTenant],
    paths: &[RoutedPath],
    starts: &[u32],
    entries: &[u32],
) -> Vec<u64> {
    let mut lists: Vec<u64> = Vec::new();
    for tenant in tenants {
        lists.extend(tenant.always.words());
        lists.extend(tenant.all.words());
    }
    for path in paths {
        lists.extend([path.base, path.kinds as u64]);
        lists.extend(path.any.words());
        lists.extend(path.valued.words());
        lists.push(path.bounds.len() as u64);
        for &(shard, lower, upper) in &path.bounds {
            lists.extend([shard as u64, lower.to_bits(), upper.to_bits()]);
        }
    }
    let counts = [tenants.len(), paths.len(), lists.len(), starts.len(), entries.len()];
    let mut words = vec![MAGIC, FORMAT, shards as u64, shard_bits as u64, key_bits as u64];
    words.extend(counts.map(|count| count as u64));
    words.extend(lists);
    let mut numbers: Vec<u32> = [starts, entries].concat();
    if numbers.len() % 2 == 1 {
        numbers.push(0);
    }
    words.extend(numbers.chunks_exact(2).map(|pair| pair[0] as u64 | (pair[1] as u64) << 32));
    words
}

/// How numbers of a kind are told from texts: the kinds of a path as a list.
pub fn kinds_of(bits: u8) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |&kind| bits & kind as u8 != 0)
}
