//! The local data that a query names.

use crate::error::{Position, QueryError};

/// `doc('name')` or `collection('name')` in a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataUse {
    pub name: String,
    pub is_collection: bool,
    pub position: Position,
}

impl DataUse {
    /// A query that names it is refused: there is no such data for this subscriber.
    pub fn unknown(&self) -> QueryError {
        let reason = format!("there is no local data of the name `{}`", self.name);
        self.refused("unknown-data", reason)
    }

    /// A query that names it is refused, for some reason.
    pub fn refused(&self, code: &'static str, reason: String) -> QueryError {
        QueryError { code, reason, position: self.position, exceeded: None }
    }
}
