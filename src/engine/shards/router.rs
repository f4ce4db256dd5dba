//! Message × routing index → the shards that the message visits.
//!
//! The automaton of the routing index finds the paths that a message has. Where a path has values, each is hashed and
//! looked up once, unless all shards that it could lead to are chosen already. Cost: one pass over the elements, and a
//! probe for each value of such a path.

use std::sync::Arc;

use super::needs::{Kind, hash_of, hash_of_number, key};
use super::routing::{Routing, kinds_of};
use super::shard_set::ShardSet;
use crate::document::{Document, Vocabulary};
use crate::ids::{ElementId, LabelId, SegmentQuery, SubjectId};
use crate::matching::automaton::dfa::{Cache, Dfa, Scratch, Trace};
use crate::matching::automaton::names::Names;
use crate::matching::findings::{Findings, Ranks};
use crate::query::functions::normalize_space;
use crate::query::number::number;
use crate::tuning::ROUTING_CACHE_BYTES;

/// What routing a message took.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RouteWork {
    /// Values that were looked up.
    pub probes: u32,
}

/// The scratch space and the cache of one thread for a routing index.
pub struct Router {
    routing: Arc<Routing>,
    names: Names,
    cache: Cache,
    scratch: Scratch,
    findings: Findings,
    ranks: Ranks,
    /// By accept set: the subjects whose values are looked up; None if that is not known yet.
    valued: Vec<Option<Vec<(SubjectId, SegmentQuery)>>>,
    clears: u64,
}

impl Router {
    pub fn new(routing: Arc<Routing>) -> Router {
        let segment = routing.segment().clone();
        let view = segment.view();
        Router {
            names: Names::new(view),
            cache: Cache::new(ROUTING_CACHE_BYTES),
            scratch: Scratch::new(&view),
            findings: Findings::new(view),
            ranks: Ranks::default(),
            valued: Vec::new(),
            clears: 0,
            routing,
        }
    }

    pub fn is_of(&self, routing: &Arc<Routing>) -> bool {
        Arc::ptr_eq(&self.routing, routing)
    }

    /// The shards that a tenant's message visits.
    pub fn route(
        &mut self,
        tenant: &str,
        document: &Document,
        vocabulary: &Vocabulary,
        visited: &mut ShardSet,
    ) -> RouteWork {
        visited.clear();
        let mut work = RouteWork::default();
        let routing = self.routing.clone();
        let Some((tenant, shards)) = routing.tenant(tenant) else { return work };
        visited.add(&shards.always);
        if visited.includes(&shards.all) {
            return work;
        }
        if self.names.update(vocabulary) {
            self.cache.clear();
        }
        self.ranks.reset();
        let segment = routing.segment().clone();
        let view = segment.view();
        let dfa = Dfa { view: &view, root: tenant.root(), names: &self.names };
        let Router { ranks, findings, cache, scratch, .. } = self;
        if dfa.find(document, ranks, findings, cache, scratch).is_err() {
            // The cache has no room for the message.
            findings.clear();
            visited.add(&shards.all);
            return work;
        }
        for condition in self.findings.conditions.iter().filter(|&one| (one as usize) < view.exact()) {
            visited.add(&routing.path(SegmentQuery(condition)).any);
        }
        self.findings.clear();
        self.probe_values(document, visited, &mut work);
        work
    }

    fn probe_values(&mut self, document: &Document, visited: &mut ShardSet, work: &mut RouteWork) {
        let Router { routing, names, cache, scratch, valued, clears, .. } = self;
        let trace = Trace::new(cache, scratch);
        if *clears != trace.clears() {
            *clears = trace.clears();
            valued.clear();
        }
        valued.resize(trace.accepts().max(valued.len()), None);
        for element in (0..document.elements.len()).map(ElementId::from) {
            let accept = trace.accept_of(element);
            let subjects = valued[accept as usize].get_or_insert_with(|| {
                let nodes = trace.nodes_of(accept).iter();
                nodes.flat_map(|&node| routing.valued_at(node).iter().copied()).collect()
            });
            for &(subject, path) in subjects.iter() {
                let path = routing.path(path);
                if visited.includes(&path.valued) {
                    continue;
                }
                let mut probe = |value: &[u8]| {
                    work.probes += 1;
                    for kind in kinds_of(path.kinds) {
                        let hash = match kind {
                            Kind::Text => hash_of(value),
                            Kind::Normalized => hash_of(&normalize_space(value)),
                            Kind::Number => {
                                let number = number(value);
                                if number.is_nan() {
                                    continue;
                                }
                                hash_of_number(number)
                            }
                        };
                        routing.keys().find(key(path.base, kind, hash), |shard| visited.insert(shard));
                    }
                    if !path.bounds.is_empty() {
                        let number = number(value);
                        for &(shard, lower, upper) in &path.bounds {
                            if number >= lower || number <= upper {
                                visited.insert(shard);
                            }
                        }
                    }
                };
                match subject {
                    SubjectId::VALUE => probe(document.string_value(element)),
                    SubjectId::TEXT => {
                        document.texts_of(element).for_each(|text| probe(text.content.of(&document.text)));
                    }
                    attribute => {
                        let label = LabelId(attribute.0);
                        for one in document.attributes_of(element) {
                            if names.of(one.name).pass(label) {
                                probe(document.value(one));
                            }
                        }
                    }
                }
            }
        }
    }
}
