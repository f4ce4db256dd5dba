//! How many candidates a segment gives for each message of a sample, and how many filing its rows by that sample would save.
//!
//! A row is a candidate where its access test holds. For a simple row the rarest of its conditions is the best access
//! test; other rows count as filed well. Cost: that of measuring the conditions, and a pass over the rows.
//!
//! ```text
//! //a[b]/c filed under //a/c, which holds in 0.9 of the messages, while //a/b holds in 0.1: filed 0.9, saved 0.8
//! ```

use crate::ids::ConditionId;
use crate::segment::build::frequency::Measured;
use crate::segment::format::columns::View;
use crate::segment::rows::simple::MOST_SIMPLE;

/// Candidates for each message.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct ExpectedCandidates {
    /// As the rows are filed.
    pub filed: f64,
    /// How many fewer there would be.
    pub saved: f64,
}

impl ExpectedCandidates {
    /// Of simple rows; nothing is expected without a sample.
    pub fn of(view: View<'_>, measured: &Measured) -> ExpectedCandidates {
        if measured.messages == 0 || view.condition_narrow.is_empty() {
            return ExpectedCandidates::default();
        }
        // Unused places of a row have the condition after the last one, which always holds.
        let count = |id: u32| measured.conditions.get(id as usize).copied().unwrap_or(measured.messages);
        let (mut filed, mut saved) = (0, 0);
        for condition in (0..view.conditions()).map(ConditionId::from) {
            let own = count(condition.0);
            if own == 0 {
                continue;
            }
            let narrow = view.narrow_rows(condition).iter().map(|row| count(row[0]));
            let wide = view
                .wide_rows(condition)
                .iter()
                .map(|row| row[..MOST_SIMPLE].iter().map(|&id| count(id)).min().expect("a row has places"));
            for rarest in narrow.chain(wide) {
                filed += u64::from(own);
                saved += u64::from(own.saturating_sub(rarest));
            }
        }
        let messages = f64::from(measured.messages);
        ExpectedCandidates { filed: filed as f64 / messages, saved: saved as f64 / messages }
    }
}
