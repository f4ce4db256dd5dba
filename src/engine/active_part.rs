//! The parts of a generation that hold queries of a tenant: a batch is matched against them.

use crate::engine::generation::Part;
use crate::ids::{GenerationQuery, TenantId};
use crate::segment::format::columns::View;

/// A part of the generation that a batch is matched against.
pub(super) struct ActivePart<'g> {
    pub at: usize,
    pub part: &'g Part,
    pub view: View<'g>,
    pub tenant: TenantId,
    /// The number of the segment's first query in the generation.
    pub first_query: GenerationQuery,
}

impl ActivePart<'_> {
    /// Removes the queries of this part from the front of `queries`, which ascend.
    pub fn take_queries<'q>(&self, queries: &mut &'q [GenerationQuery]) -> &'q [GenerationQuery] {
        let is_own =
            |query: &GenerationQuery| query.in_segment(self.first_query).index() < self.view.queries();
        let (own, others) = queries.split_at(queries.partition_point(is_own));
        *queries = others;
        own
    }
}
