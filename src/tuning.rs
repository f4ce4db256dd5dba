//! How much is little: up to there things are gone through one by one, beyond it they are put in order first.

/// A matcher with less room than this for its caches puts everything in order, as it must for large messages
/// and many queries: so small ones go every way too, and can be compared.
const SMALL: usize = 1 << 20;

#[derive(Clone, Copy)]
pub struct Few {
    /// Places of a condition.
    pub places: usize,
    /// Queries to verify in a message.
    pub verified: u64,
}

impl Few {
    pub fn of(capacity: usize) -> Few {
        match capacity < SMALL {
            true => Few { places: 0, verified: 0 },
            false => Few { places: 16, verified: 64 },
        }
    }
}
