//! The selectivity of conditions: the expected share of messages in which each holds. Access tests are chosen by it.

use crate::ids::ConditionId;
use crate::segment::rows::range::Range;
use crate::tuning::PRIOR_RANGE;

/// The frequencies in the messages of a sample.
#[derive(Default)]
pub struct Measured {
    pub messages: u32,
    /// Per condition, the messages it held in.
    pub conditions: Vec<u32>,
    /// Per side of a slot, its number in each message that had one.
    pub sides: Vec<Vec<f64>>,
}

/// Expected shares: measured where there is a sample, with priors that fade as it grows.
pub struct Frequencies {
    conditions: Vec<f32>,
    messages: u32,
    /// Per side of a slot, ascending.
    sides: Vec<Vec<f64>>,
}

impl Frequencies {
    pub fn new(priors: Vec<f32>, measured: Measured) -> Frequencies {
        let messages = measured.messages as f32;
        let mut conditions = priors;
        for (share, &count) in conditions.iter_mut().zip(&measured.conditions) {
            *share = (*share + count as f32) / (1.0 + messages);
        }
        let mut sides = measured.sides;
        sides.iter_mut().for_each(|side| side.sort_unstable_by(f64::total_cmp));
        Frequencies { conditions, messages: measured.messages, sides }
    }

    pub fn of_condition(&self, condition: ConditionId) -> f32 {
        self.conditions[condition.index()]
    }

    pub fn of_range(&self, range: Range, constant: f64) -> f32 {
        let passing = self
            .sides
            .get(range.side())
            .map_or(0, |side| side.len() - side.partition_point(|&number| number <= constant));
        let share = (PRIOR_RANGE + passing as f32) / (1.0 + self.messages as f32);
        if range.negated() { 1.0 - share } else { share }
    }
}
