//! Range tests in one form: a slot's side exceeds a constant.
//!
//! Some number of a message is greater than a constant if the largest is; it is less if the
//! smallest is, that is if the negated smallest exceeds the negated constant. And "at least" is
//! "greater than the double just below".

use crate::query::ast::Operator;

/// A side of a slot, and whether the test is negated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Range(pub u32);

impl Range {
    /// The test `slot operator constant`. `None` if no double lies below the bound it needs.
    pub fn new(slot: u32, operator: Operator, constant: f64, negated: bool) -> Option<(Range, f64)> {
        let (below, bound, strict) = match operator {
            Operator::Greater => (false, constant, true),
            Operator::GreaterOrEqual => (false, constant, false),
            Operator::Less => (true, -constant, true),
            Operator::LessOrEqual => (true, -constant, false),
            Operator::Equal | Operator::NotEqual => return None,
        };
        if !strict && bound == f64::NEG_INFINITY {
            return None;
        }
        let bound = if strict || bound.is_nan() { bound } else { bound.next_down() };
        Some((Range(slot << 2 | (below as u32) << 1 | negated as u32), bound))
    }

    /// The place of the side among the sides of all slots.
    #[inline(always)]
    pub fn side(self) -> usize {
        (self.0 >> 1) as usize
    }

    #[inline(always)]
    pub fn negated(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether a side with this number passes; NaN stands for no number.
    #[inline(always)]
    pub fn passes(self, number: f64, constant: f64) -> bool {
        (number > constant) != self.negated()
    }

    /// An integer that grows as the number passes more constants: where a constant's key is less than
    /// the number's the test passes, where it is greater the test fails.
    #[inline(always)]
    pub fn key(self, number: f64) -> u64 {
        // Zero has two bit patterns and is one number; adding zero leaves one of them.
        let order = sortable(number + 0.0);
        if self.negated() { !order } else { order }
    }
}

/// An integer that orders as the number does.
#[inline(always)]
pub fn sortable(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

pub fn number_of(sortable: u64) -> f64 {
    f64::from_bits(if sortable >> 63 == 0 { !sortable } else { sortable & !(1 << 63) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_operators() {
        let numbers = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, 1e300, f64::INFINITY];
        for constant in numbers {
            for (operator, holds) in [
                (Operator::Less, f64::lt as fn(&f64, &f64) -> bool),
                (Operator::LessOrEqual, f64::le),
                (Operator::Greater, f64::gt),
                (Operator::GreaterOrEqual, f64::ge),
            ] {
                let Some((range, bound)) = Range::new(7, operator, constant, false) else {
                    assert!(constant.is_infinite());
                    continue;
                };
                for number in numbers {
                    let side = if range.side() == 15 { -number } else { number };
                    assert_eq!(
                        range.passes(side, bound),
                        holds(&number, &constant),
                        "{number} {operator:?} {constant}"
                    );
                }
                assert!(!range.passes(f64::NAN, bound));
            }
        }
    }
}
