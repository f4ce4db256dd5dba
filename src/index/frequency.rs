//! How often conditions hold: what filing goes by.

use crate::index::rows::{GREATER, LESS, LESS_OR_EQUAL, Range};

/// The share of messages in which a slot is expected to pass a range.
const PRIOR_RANGE: f32 = 0.4;

/// What the messages of a sample showed.
#[derive(Default)]
pub struct Measured {
    pub messages: u32,
    /// Per condition, the messages it held in.
    pub conditions: Vec<u32>,
    /// Per slot, the smallest and the largest number of each message that had one.
    pub slots: Vec<Vec<(f64, f64)>>,
}

/// Expected shares: measured where there is a sample, with priors that fade as it grows.
pub struct Frequencies {
    conditions: Vec<f32>,
    messages: u32,
    smallest: Vec<Vec<f64>>,
    largest: Vec<Vec<f64>>,
}

impl Frequencies {
    pub fn new(priors: Vec<f32>, measured: Measured) -> Frequencies {
        let messages = measured.messages as f32;
        let mut conditions = priors;
        for (share, &count) in conditions.iter_mut().zip(&measured.conditions) {
            *share = (*share + count as f32) / (1.0 + messages);
        }
        let sorted = |pick: fn(&(f64, f64)) -> f64| {
            let column = |slot: &Vec<(f64, f64)>| {
                let mut column: Vec<f64> = slot.iter().map(pick).collect();
                column.sort_unstable_by(f64::total_cmp);
                column
            };
            measured.slots.iter().map(column).collect()
        };
        let (smallest, largest) = (sorted(|slot| slot.0), sorted(|slot| slot.1));
        Frequencies {
            conditions,
            messages: measured.messages,
            smallest,
            largest,
        }
    }

    pub fn of_condition(&self, condition: u32) -> f32 {
        self.conditions[condition as usize]
    }

    pub fn of_range(&self, range: Range, constant: f64) -> f32 {
        let empty = Vec::new();
        let column = if range.operator() < GREATER {
            &self.smallest
        } else {
            &self.largest
        };
        let column = column.get(range.slot()).unwrap_or(&empty);
        let count = match range.operator() {
            LESS => column.partition_point(|&number| number < constant),
            LESS_OR_EQUAL => column.partition_point(|&number| number <= constant),
            GREATER => column.len() - column.partition_point(|&number| number <= constant),
            _ => column.len() - column.partition_point(|&number| number < constant),
        };
        (PRIOR_RANGE + count as f32) / (1.0 + self.messages as f32)
    }
}
