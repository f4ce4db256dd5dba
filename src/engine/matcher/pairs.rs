//! Given pairs of a message and a query: whether the query matches the message, by evaluating it there. No index is asked,
//! so the cost is that of reading each message and of verifying each pair: for what another engine left undecided.

use super::segment_state::SegmentState;
use super::{Matcher, Matches};
use crate::document::Message;
use crate::engine::active_part::ActivePart;
use crate::engine::generation::Generation;
use crate::error::ReadError;
use crate::ids::SegmentQuery;
use crate::limits::Limits;
use crate::matching::budget::{Budget, WorkLimit};
use crate::matching::twigs::verify::{Trees, Verifier};

impl Matcher {
    /// For each message with its targets, the queries of these targets that match it. A target that the generation
    /// does not have, or that another tenant has, matches nothing.
    pub fn match_pairs<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        pairs: impl Iterator<Item = (Message<'m>, &'m [u64])>,
        limits: &Limits,
        mut sink: impl FnMut(Result<&Matches, ReadError>),
    ) {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        let mut matches = Matches::default();
        for (message, targets) in pairs {
            matches.clear();
            match self.read(&message, limits, &active, generation) {
                Ok(()) => {
                    matches.skipped_entities = self.document.skipped_entities;
                    self.verify_targets(generation, &active, targets, limits, &mut matches);
                    sink(Ok(&matches));
                }
                Err(error) => sink(Err(error)),
            }
        }
    }

    /// Verifies the queries of targets on the message that was read last.
    fn verify_targets(
        &mut self,
        generation: &Generation,
        active: &[ActivePart<'_>],
        targets: &[u64],
        limits: &Limits,
        matches: &mut Matches,
    ) {
        let mut budget = Budget::new(limits.work);
        self.by_name.reset();
        for active in active {
            let places = targets.iter().filter_map(|&target| active.part.find(target));
            let mut queries: Vec<SegmentQuery> =
                places.map(|place| active.view.target_query[place as usize]).collect();
            queries.sort_unstable();
            queries.dedup();
            queries.retain(|&query| active.view.tenant_of(query) == active.tenant);
            if queries.is_empty() {
                continue;
            }
            if generation.shards().is_some() {
                self.open_parts(std::iter::once(active.at));
            }
            let SegmentState { segment, names, cache, memo, compiled, .. } = self.segments[active.at].open();
            if names.update(self.reader.vocabulary()) {
                cache.clear();
            }
            compiled.trim();
            queries.iter().for_each(|&query| compiled.prepare(segment, names, query));
            memo.clear();
            matches.work.candidates += queries.len() as u64;
            matches.work.verified += queries.len() as u64;
            for query in queries {
                let offset = compiled.offset(query).expect("prepared");
                let trees = Trees::new(&self.document, self.reader.vocabulary(), names, &self.records);
                let mut verifier =
                    Verifier::new(compiled.words(), trees, &mut self.by_name, memo, &mut budget);
                let number = query.in_generation(active.first_query);
                match verifier.matches(offset) {
                    Ok(true) => matches.queries.push(number),
                    Ok(false) => {}
                    Err(WorkLimit) => matches.failed.push(number),
                }
            }
            matches.work.looked_up += memo.lookups();
            memo.clear();
        }
        matches.work.steps = budget.steps();
    }
}
