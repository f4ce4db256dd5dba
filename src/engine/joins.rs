//! The joins of a segment's queries with local data, and the records that a message meets by them.

use rustc_hash::FxHashMap;

use crate::data::{DataSets, Records};
use crate::document::{Document, Reader};
use crate::error::{Exceeded, Position, ReadError};
use crate::ids::{LabelId, SegmentQuery, TenantId};
use crate::matching::joiner::Joiner;
use crate::query::ast::Axis;
use crate::query::joined::joins_of;
use crate::query::{Namespaces, parse};
use crate::segment::format::columns::View;
use crate::segment::format::file::Segment;
use crate::segment::format::labels::special_names;

#[derive(Default)]
pub struct SegmentJoins {
    /// The labels of joins, by their numbers.
    joins: FxHashMap<usize, LabelId>,
    /// Queries with a join that the data cannot serve.
    pub unserved: Vec<SegmentQuery>,
}

impl SegmentJoins {
    /// Finds the joins of a segment by its labels, and adds them to the joiner.
    pub fn find(segment: &Segment, joiner: &mut Joiner, sets: &DataSets) -> SegmentJoins {
        let named = special_names(segment.view());
        let numbered = named.filter_map(|(label, name)| Some((joiner.number(name, sets)?, label)));
        let joins: FxHashMap<usize, LabelId> = numbered.collect();
        let mut unserved = Vec::new();
        if joins.keys().any(|&join| joiner.is_unserved(join)) {
            let queries = segment.view().all_queries();
            unserved.extend(queries.filter(|&query| is_unserved(segment, query, sets)));
        }
        SegmentJoins { joins, unserved }
    }

    /// Whether a query of a tenant has a join.
    fn has(&self, join: usize, view: &View<'_>, tenant: TenantId) -> bool {
        let label = self.joins.get(&join);
        label.is_some_and(|&label| view.child(tenant.root(), Axis::Child, label).is_some())
    }
}

/// Adds the records that a message meets to its document, by the joins of some segments.
pub fn add_records<'s>(
    segments: impl Iterator<Item = (&'s View<'s>, TenantId, &'s SegmentJoins)> + Clone,
    joiner: &mut Joiner,
    reader: &mut Reader,
    document: &mut Document,
    records: &Records,
    limit: usize,
) -> Result<(), ReadError> {
    if joiner.is_empty() {
        return Ok(());
    }
    let is_wanted = |join: usize| segments.clone().any(|(view, tenant, joins)| joins.has(join, view, tenant));
    joiner.join(is_wanted, reader, document, records, limit).map_err(|exceeded| {
        let Exceeded { value, limit } = exceeded;
        let reason =
            format!("the message meets {value} records of local data, more than the {limit} allowed");
        let position = Position::of(&document.source, 0);
        ReadError { code: "tuples-limit", reason, position, exceeded: Some(exceeded) }
    })
}

/// Whether a query has a join that the data cannot serve.
fn is_unserved(segment: &Segment, query: SegmentQuery, sets: &DataSets) -> bool {
    // A canonical text parses: it was written by us. A damaged one is a panic, which the caller takes for damage.
    let text = segment.text(query).expect("an intact text");
    let parsed = parse(text, &Namespaces::default()).expect("a canonical text");
    let mut joiner = Joiner::default();
    joins_of(&parsed).iter().any(|join| {
        let number = joiner.number(&join.name(), sets);
        number.is_some_and(|number| joiner.is_unserved(number))
    })
}
