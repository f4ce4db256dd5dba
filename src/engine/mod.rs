//! The engine: the set of standing queries as it changes, and matching batches against it.
//!
//! | file | |
//! |---|---|
//! | `index` | the queries as they change: inserts, removals, commits, merges |
//! | `local_data` | whether local data serves the queries that name it |
//! | `parse_ahead` | parses queries while earlier ones are compiled |
//! | `expected_candidates` | what filing a segment by another sample would save |
//! | `sample` | a sample of messages, for the selectivity of conditions |
//! | `generation` | segments and tombstones, which a batch is matched against |
//! | `snapshot` | generations as files |
//! | `shards/` | which parts of a generation a message visits |
//! | `matcher` | batches of messages × generation → matches, selected nodes or outputs |
//! | `cache_stats` | the memory of the caches of a matcher |
//! | `guard` | panics → errors: damage, or a defect |
//! | `explain/` | why a query matched a message or not |

pub mod cache_stats;
pub mod expected_candidates;
pub mod explain;
pub mod generation;
pub mod guard;
pub mod index;
pub mod local_data;
pub mod matcher;
mod parse_ahead;
pub mod sample;
pub mod shards;
pub mod snapshot;
