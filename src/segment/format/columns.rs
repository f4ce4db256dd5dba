//! The flat arrays a segment is made of, listed once.
//!
//! From the list come `Columns` (growing, while a segment is built), `View` (borrowed slices: what
//! matching reads, whether the arrays lie in memory or in a mapped file) and the file's sections.

use bytemuck::Pod;

use crate::ids::{AnchorId, ConditionId, LabelId, SegmentQuery, SubjectId, TenantId};
use crate::query::QueryId;
use crate::segment::format::constants::{EqualEntry, UnequalTest};
use crate::segment::rows::shape::Shape;

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        #[derive(Default)]
        pub struct Columns { $($(#[$doc])* pub $name: Vec<$type>,)* }

        #[derive(Clone, Copy)]
        pub struct View<'a> { $($(#[$doc])* pub $name: &'a [$type],)* }

        /// How many columns there are: the length of a file's section table.
        pub const COLUMNS: usize = [$(stringify!($name)),*].len();

        impl Columns {
            pub fn view(&self) -> View<'_> {
                View { $($name: &self.$name,)* }
            }

            /// The columns as bytes, in order.
            pub fn sections(&self) -> [&[u8]; COLUMNS] {
                [$(bytemuck::cast_slice(&self.$name)),*]
            }
        }

        impl<'a> View<'a> {
            /// Borrows columns from sections; `None` if one has a length that does not fit its type.
            pub fn of(sections: [&'a [u8]; COLUMNS]) -> Option<View<'a>> {
                let mut sections = sections.into_iter();
                $(let $name = cast::<$type>(sections.next()?)?;)*
                Some(View { $($name,)* })
            }
        }
    };
}

fn cast<T: Pod>(bytes: &[u8]) -> Option<&[T]> {
    bytemuck::try_cast_slice(bytes).ok()
}

columns! {
    /// How many conditions, anchors, slots, exact queries and queries with several alternatives.
    counts: u32,

    // Names. Label 0 is `*`; label i has the text ending at `label_ends[i]`.
    label_bytes: u8,
    label_ends: u32,
    // Tenants. Tenant t has the trie root t.
    tenant_bytes: u8,
    tenant_ends: u32,
    /// Per tenant, its rows with no access test: `program[always[t]..always[t + 1]]`.
    always: u32,

    // The shared-prefix trie of all lines, breadth first: the automaton. The children of node n
    // by `/` are `children[n]..descendants[n]`, those by `//` are `descendants[n]..children[n + 1]`,
    // each sorted by label.
    node_label: LabelId,
    node_children: u32,
    node_descendants: u32,
    /// The condition "an element is bound here", or `NONE`.
    node_condition: ConditionId,
    /// The anchor to count elements for, or `NONE`. Empty if there are no anchors.
    node_anchor: AnchorId,
    /// Entries of node n: `node_entries[n]..node_entries[n + 1]`. Empty if there are no entries.
    node_entries: u32,

    // Entries: what is looked at below a node. Sorted by node and subject.
    entry_subject: SubjectId,
    /// The condition "the subject is there", or `NONE`.
    entry_exists: ConditionId,
    /// The slot that gathers its numbers for range tests, or `NONE`.
    entry_slot: u32,
    /// `ENTRY_TEXT`, `ENTRY_NUMBER` and `ENTRY_NORMALIZED`: kinds of constants it is compared with for equality.
    entry_flags: u8,
    /// Bounds of entry e that are conditions: `entry_bounds[e]..entry_bounds[e + 1]`. A bound holds
    /// if the number, or on side 1 its negative, exceeds it.
    entry_bounds: u32,
    bound: f64,
    bound_side: u8,
    bound_condition: ConditionId,

    // Constants of equality tests: texts are numbered first, then numbers.
    hash_seed: u64,
    text_bytes: u8,
    text_ends: u32,
    text_table: u32,
    number: f64,
    number_table: u32,
    /// Equality tests of subjects below nodes of a label: open addressing over (label, subject,
    /// constant, list). List l is `equal[equal_start[l]..equal_start[l + 1]]`.
    equal_table: [u32; 4],
    equal_start: u32,
    equal: EqualEntry,

    /// Inequality tests of entry e: `entry_unequal[e]..entry_unequal[e + 1]`.
    /// Empty if there are none.
    entry_unequal: u32,
    unequal: UnequalTest,

    // Rows filed under condition c; see `rows`. All but `direct` are empty where there are none.
    /// A bit per condition: whether it has simple rows that are copied into the matcher's blocks, and whether
    /// it has rows that are read from the segment directly.
    copied: u64,
    direct: u64,
    /// Simple rows: `narrow[condition_narrow[c]..condition_narrow[c + 1]]`, and so `wide`.
    condition_narrow: u32,
    narrow: [u32; 4],
    condition_wide: u32,
    wide: [u32; 8],
    /// Other rows: `program[condition_rows[c]..condition_rows[c + 1]]`.
    condition_rows: u32,

    // Rows filed under a range: the thresholds of each side of a slot, ascending.
    range_start: u32,
    threshold: f64,
    threshold_rows: u32,

    /// Groups of rows; see `groups`.
    program: u32,
    /// The constants of the range tests of rows in groups.
    own_constant: f64,
    /// The shapes of simple rows, by query, from the first that has no other rows.
    shape: Shape,

    query_id: [u8; 16],
    /// Where the query's twig starts in `twig`, or `NONE` if rows are always exact. Empty if all are.
    query_twig: u32,
    /// Tenant of each query. Empty if there is one tenant.
    query_tenant: TenantId,
    /// Targets of query q: `query_targets[q]..query_targets[q + 1]` of `target_order`.
    query_targets: u32,
    /// Indexes into `target`.
    target_order: u32,
    /// All targets, ascending.
    target: u64,
    target_query: SegmentQuery,

    /// Compiled twigs; see `twig`.
    twig: u32,
}

/// The length of the column `counts`.
pub const COUNTS: usize = 5;

impl View<'_> {
    pub fn conditions(&self) -> usize {
        self.counts[0] as usize
    }

    pub fn anchors(&self) -> usize {
        self.counts[1] as usize
    }

    pub fn slots(&self) -> usize {
        self.counts[2] as usize
    }

    /// Queries that match exactly if one condition holds; query and condition share their number.
    pub fn exact(&self) -> usize {
        self.counts[3] as usize
    }

    /// Queries filed under several alternatives; they are numbered after the exact ones.
    pub fn multi(&self) -> usize {
        self.counts[4] as usize
    }

    /// The tenant of a query.
    pub fn tenant_of(&self, query: SegmentQuery) -> TenantId {
        // With one tenant the column is empty.
        self.query_tenant.get(query.index()).copied().unwrap_or(TenantId(0))
    }

    /// Finds a tenant's query by its id.
    pub fn find_query(&self, tenant: TenantId, id: QueryId) -> Option<SegmentQuery> {
        let is_it =
            |query: &SegmentQuery| self.query_id[query.index()] == id.0 && self.tenant_of(*query) == tenant;
        self.all_queries().find(is_it)
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.query_id.len()
    }

    pub fn all_queries(&self) -> impl Iterator<Item = SegmentQuery> + use<> {
        (0..self.queries()).map(SegmentQuery::from)
    }

    /// The first query that is filed just once.
    pub fn first_single(&self) -> usize {
        self.exact() + self.multi()
    }

    /// The shape of a query's simple row.
    pub fn shape_of(&self, query: SegmentQuery) -> Shape {
        self.shape[query.index() - self.first_single()]
    }
}

impl<'a> View<'a> {
    /// The places of a query's targets.
    pub fn targets_of(&self, query: SegmentQuery) -> &'a [u32] {
        let query = query.index();
        match self.query_targets {
            [] => &self.target_order[query..query + 1],
            starts => &self.target_order[starts[query] as usize..starts[query + 1] as usize],
        }
    }
}
