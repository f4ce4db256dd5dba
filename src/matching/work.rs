//! Counters of the work of a message, by stage: costs that grow with the message or the queries show here first.
//!
//! ```text
//! queries  //item[price > 50][tag = 'sale']  and  //item[.//x]//y[2]    a message with two items
//! candidates   both, if the access test of each holds
//! settled      the first: its conditions hold below the same item, so the document is not read again
//! verified     the second: positions below several items are counted on the document, in so many steps
//! ```

use std::ops::AddAssign;

/// The work of one message. Counters of inner loops are kept in the structures that the loops use, and read once a
/// message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Rows that were tested. Queries that a condition decides exactly have none.
    pub candidates: u64,
    /// Queries that were decided from the occurrences of their conditions.
    pub settled: u64,
    /// Queries that were decided on the document.
    pub verified: u64,
    /// Steps of verification: nodes that were tried, and text that was searched; see `Budget`.
    pub steps: u64,
    /// Steps of paths that verification took by looking elements up by value instead of trying them one by one.
    pub looked_up: u64,
    /// Values that were looked up in local data, and the records that the message met.
    pub probes: u64,
    pub records: u64,
    /// 1 if the cache had no room for the message, which the NFA then matched without one.
    pub uncached: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.candidates += other.candidates;
        self.settled += other.settled;
        self.verified += other.verified;
        self.steps += other.steps;
        self.looked_up += other.looked_up;
        self.probes += other.probes;
        self.records += other.records;
        self.uncached += other.uncached;
    }
}
