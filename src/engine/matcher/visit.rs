//! The shards that a message visits: routes the message, prepares what it visits, and closes what was not used for longest.
//!
//! What a generation of one shard needs is prepared at once and stays.

use std::sync::Arc;

use super::Matcher;
use super::segment_state::{SegmentState, Slot};
use crate::document::Message;
use crate::engine::active_part::ActivePart;
use crate::engine::generation::{Generation, Part};
use crate::engine::joins::SegmentJoins;
use crate::engine::shards::{RouteWork, Router, ShardSet};
use crate::error::{Position, ReadError};
use crate::limits::Limits;

/// The code of a message that visits a shard that is not open: open it and match the message again.
const SHARD_CLOSED: &str = "shard-closed";

/// The parts of each shard.
pub(super) fn by_shard<'a, 'g>(active: &'a [ActivePart<'g>]) -> impl Iterator<Item = &'a [ActivePart<'g>]> {
    active.chunk_by(|a, b| a.part.shard == b.part.shard)
}

impl Matcher {
    /// Keeps the state of segments that the generation still has, and makes room for the others. If the generation has
    /// several shards, what a segment needs is made when a message visits its shard.
    pub fn prepare(&mut self, generation: &Generation) {
        let parts = generation.parts();
        let is_same = |(slot, part): (&Slot, &Part)| Arc::ptr_eq(&slot.segment, &part.segment);
        if self.generation == Some(generation.number)
            && self.segments.len() == parts.len()
            && self.segments.iter().zip(parts).all(is_same)
        {
            return;
        }
        let mut known = std::mem::take(&mut self.segments);
        for part in parts {
            let same = |slot: &Slot| Arc::ptr_eq(&slot.segment, &part.segment);
            self.segments.push(match known.iter().position(same) {
                Some(at) => known.swap_remove(at),
                None => Slot {
                    segment: part.segment.clone(),
                    state: None,
                    used: 0,
                    joins: SegmentJoins::default(),
                },
            });
        }
        if generation.shards().is_none() {
            let none = Arc::default();
            for slot in self.segments.iter_mut().filter(|slot| slot.state.is_none()) {
                slot.state = Some(SegmentState::boxed(&slot.segment, &none, &self.tuning));
            }
        }
        self.generation = Some(generation.number);
        self.attached = None;
    }

    /// Prepares the parts of one shard, and closes shards that were not used for longest beyond the bytes that may be
    /// open. False if the message does not visit the shard.
    pub(super) fn open_shard(&mut self, generation: &Generation, parts: &[ActivePart<'_>]) -> bool {
        if generation.shards().is_none() {
            return true;
        }
        if !self.visited.contains(parts[0].part.shard) {
            return false;
        }
        self.open_parts(parts.iter().map(|part| part.at));
        true
    }

    /// Prepares parts that may be closed again, as long as none of a later call needs room.
    pub(super) fn open_parts(&mut self, places: impl Iterator<Item = usize>) {
        self.clock += 1;
        let sets = self.attached.as_ref().expect("attached for the batch");
        let mut is_new = false;
        for at in places {
            let slot = &mut self.segments[at];
            slot.used = self.clock;
            if slot.state.is_none() {
                slot.state = Some(SegmentState::boxed(&slot.segment, sets, &self.tuning));
                is_new = true;
            }
        }
        if is_new {
            self.close_beyond(self.tuning.open_bytes);
        }
    }

    /// Closes what was not used for longest.
    fn close_beyond(&mut self, most_bytes: usize) {
        let open = |slot: &&mut Slot| slot.state.is_some();
        let mut bytes: usize =
            self.segments.iter_mut().filter(open).map(|slot| slot.segment.bytes().len()).sum();
        while bytes > most_bytes {
            let others = self.segments.iter_mut().filter(|slot| slot.used < self.clock).filter(open);
            let Some(oldest) = others.min_by_key(|slot| slot.used) else { return };
            oldest.state = None;
            bytes -= oldest.segment.bytes().len();
        }
    }

    /// The shards that each message visits, and how many values were looked up for that. All shards if they have no
    /// routing index.
    pub fn route_batch<'m>(
        &mut self,
        generation: &Generation,
        tenant: &str,
        messages: impl Iterator<Item: Into<Message<'m>>>,
        limits: &Limits,
        mut sink: impl FnMut(Result<(&ShardSet, RouteWork), ReadError>),
    ) {
        self.prepare(generation);
        self.attach_data(generation, tenant);
        let active = self.active(generation, tenant);
        for message in messages {
            let read = self.read(&message.into(), limits, &active, generation);
            match read.map(|()| self.route(generation, tenant)) {
                Ok(work) => sink(Ok((&self.visited, work))),
                Err(error) => sink(Err(error)),
            }
        }
    }

    /// Reads a message and finds the shards that it visits; an error if one of them is not open.
    pub(super) fn read_and_route(
        &mut self,
        message: &Message<'_>,
        limits: &Limits,
        active: &[ActivePart<'_>],
        generation: &Generation,
        tenant: &str,
    ) -> Result<(), ReadError> {
        self.read(message, limits, active, generation)?;
        let Some(shards) = generation.shards() else { return Ok(()) };
        self.route(generation, tenant);
        let Some(closed) = self.visited.iter().find(|&shard| !shards.open.contains(shard)) else {
            return Ok(());
        };
        Err(ReadError {
            code: SHARD_CLOSED,
            reason: format!("the message visits shard {closed}, which is not open"),
            position: Position::default(),
            exceeded: None,
        })
    }

    fn route(&mut self, generation: &Generation, tenant: &str) -> RouteWork {
        let Some(shards) = generation.shards() else { return RouteWork::default() };
        if self.visited.words().len() != shards.all.len().div_ceil(64) {
            self.visited = ShardSet::new(shards.all.len());
        }
        let Some(routing) = &shards.routing else {
            (0..shards.all.len() as u32).for_each(|shard| self.visited.insert(shard));
            return RouteWork::default();
        };
        let router = match &mut self.router {
            Some(router) if router.is_of(routing) => router,
            other => other.insert(Router::new(routing.clone())),
        };
        let work = router.route(tenant, &self.document, self.reader.vocabulary(), &mut self.visited);
        // Later shards are not in the routing index.
        let others = routing.shards() as u32..shards.all.len() as u32;
        others.for_each(|shard| self.visited.insert(shard));
        work
    }
}
