//! The work limit: the steps that one query may take on one message.
//!
//! Every evaluator calls `Budget::spend` for each step and passes the error up with `?`. An evaluation that ended with
//! the error decided nothing, so its partial results must not be cached. A step is a node that is tried,
//! `BYTES_PER_STEP` bytes of text that are searched, or one byte of text that a function makes, which limits the memory
//! of a query too. A query takes fewer steps if other queries of the message have cached a part of its answer.

use crate::error::Exceeded;
use crate::limits::QUERY_NODES_LIMIT;
use crate::tuning::BYTES_PER_STEP;

/// The query took more steps than it may: it is not known whether it matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkLimit;

/// Whether something holds, unless the work limit was reached before.
pub type Decided = Result<bool, WorkLimit>;

impl WorkLimit {
    pub const CODE: &'static str = "work-limit";

    /// The reason for people, and both numbers.
    pub fn describe(limit: usize) -> (String, Exceeded) {
        let limit = limit as u64;
        let reason = format!("the query takes more steps on this message than the {limit} allowed");
        (reason, Exceeded { value: limit.saturating_add(1), limit })
    }
}

/// The steps of one query after the other: what is left for the current one, and how many all took.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    limit: usize,
    left: usize,
    /// The steps of the queries before.
    spent: u64,
    /// How many parts of the query are being evaluated inside one another.
    depth: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Budget {
        Budget { limit, left: limit, spent: 0, depth: 0 }
    }

    pub fn unlimited() -> Budget {
        Budget::new(usize::MAX)
    }

    /// Starts the next query.
    pub fn restart(&mut self) {
        self.spent = self.steps();
        self.left = self.limit;
        self.depth = 0;
    }

    /// Counts a part of the query that is evaluated inside another one, until `leave`. A damaged twig may contain itself:
    /// its evaluation would not end.
    #[inline(always)]
    pub fn enter(&mut self) {
        self.depth += 1;
        assert!(self.depth <= 2 * QUERY_NODES_LIMIT, "the twig is damaged");
    }

    #[inline(always)]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The steps that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The steps of all queries so far.
    pub fn steps(&self) -> u64 {
        self.spent + (self.limit - self.left) as u64
    }

    /// Counts steps.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) -> Result<(), WorkLimit> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(WorkLimit),
        }
    }

    /// Counts the steps of reading so many bytes of text.
    #[inline(always)]
    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), WorkLimit> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }
}

/// Whether one of them holds: `Iterator::any` for what may end by the work limit.
#[inline(always)]
pub fn any<T>(items: impl IntoIterator<Item = T>, mut holds: impl FnMut(T) -> Decided) -> Decided {
    for item in items {
        if holds(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether all of them hold: `Iterator::all` for what may end by the work limit.
#[inline(always)]
pub fn all<T>(items: impl IntoIterator<Item = T>, mut holds: impl FnMut(T) -> Decided) -> Decided {
    Ok(!any(items, |item| Ok(!holds(item)?))?)
}
