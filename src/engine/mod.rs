//! The engine: the set of standing queries as it changes, and matching batches against it.
//!
//! | file | |
//! |---|---|
//! | `index` | the queries as they change: inserts, removals, commits, merges |
//! | `local_data` | whether local data serves the queries that name it |
//! | `data_files` | versions of data sets as files |
//! | `parse_ahead` | parses queries while earlier ones are compiled |
//! | `expected_candidates` | what filing a segment by another sample would save |
//! | `sample` | a sample of messages, for the selectivity of conditions |
//! | `generation` | segments and tombstones, which a batch is matched against |
//! | `active_part` | the parts of a generation with queries of a tenant |
//! | `joins` | the joins of a segment with local data, the records that a message meets |
//! | `snapshot` | generations as files |
//! | `shards/` | which parts of a generation a message visits |
//! | `matcher` | batches of messages × generation → matches, selected nodes or outputs |
//! | `cache_stats` | the memory of the caches of a matcher |
//! | `guard` | panics → errors: damage, or a defect |
//! | `explain/` | why a query matched a message or not |

mod active_part;
pub mod cache_stats;
pub mod data_files;
pub mod expected_candidates;
pub mod explain;
pub mod generation;
pub mod guard;
pub mod index;
mod joins;
pub mod local_data;
pub mod matcher;
mod parse_ahead;
pub mod sample;
pub mod shards;
pub mod snapshot;
