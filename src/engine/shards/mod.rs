//! Shards: parts of a generation that are visited only by the messages that can match in them.
//!
//! ```text
//! query   → what each of its alternatives needs most of a message: a value, or that a path is there     needs
//! shard   → the needs of its queries, together: its summary                                              summary
//! summaries → one index: path → shards, path and value → shards                                          routing
//! message → the shards that it visits                                                                     router
//! ```
//!
//! A query that matches satisfies one of its alternatives, and with it what that alternative needs. So a message that
//! satisfies no need of a shard matches nothing there. Everything that is not said exactly is said more weakly: a
//! shard may be visited in vain, and is never left out.
//!
//! With the queries `//item[@sku = 'A-1']` in shard 0, `//order/note` in shard 1 and `not(//item)` in shard 2, the message
//! `<order><item sku="A-1"/></order>` visits shard 0 (its value is there) and 2 (which needs nothing).
//!
//! | file | |
//! |---|---|
//! | `needs` | query → needs, and the place by which it is put into a shard |
//! | `summary` | the needs of a shard, as a file |
//! | `routing` | the summaries of all shards in one index, as files |
//! | `keys` | hash of a path and a value → shards, in about 4.5 bytes a key |
//! | `router` | message × routing index → shards |
//! | `shard_set` | a set of shards |

mod keys;
mod needs;
mod router;
pub mod routing;
mod shard_set;
mod summary;

pub use needs::{Placement, place};
pub use router::{RouteWork, Router};
pub use routing::Routing;
pub use shard_set::ShardSet;
pub use summary::Summary;
