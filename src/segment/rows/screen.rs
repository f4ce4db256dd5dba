//! A byte for each range test of a row, which nearly always says what the test says.
//!
//! Rows that lie together compare a side of a slot with constants that lie on one *scale*. On it a
//! constant has a *code*: its place, with the finer part left out. A message's number has a *level*,
//! and the level less the code tells
//!
//! | difference | the test |
//! |---|---|
//! | 0 or less | fails |
//! | 1 | passes or fails: number and constant share a place, only they themselves can tell |
//! | 2 or more | passes |
//!
//! A row without such a test has the code 0, and no level is below 2: it always passes.
//!
//! Two ranges that no row tests both share a column of codes. Those of the second are mirrored,
//! and so are its levels: there the code less the level tells. Codes of the one are below all
//! levels of the other's mirror image, so that the larger of both differences is what counts.

use crate::segment::rows::range::Range;

/// The code of a row that does not have the test.
pub const NO_TEST: u8 = 0;
/// The code of what fills up a column: no level passes it. It is its own mirror image.
pub const NO_ROW: u8 = 128;
/// A level that passes no test, and one that passes all.
pub const PASSES_NONE: u8 = 2;
const PASSES_ALL: u8 = NO_ROW;

const LOWEST_CODE: u8 = 2;
/// The last place of a constant. `PASSES_ALL` is 2 more than its code.
const LAST_PLACE: u8 = PASSES_ALL - 2 - LOWEST_CODE;

/// Steps of a scale are counted in so many bits before they are scaled down to places.
const STEP_BITS: u32 = 16;

/// Words of a scale with its range.
pub const SCALE: usize = 4;

/// A code or a level of a column's second range.
#[inline(always)]
pub fn mirrored(byte: u8) -> u8 {
    byte.wrapping_neg()
}

/// Whether a code is of a column's second range.
#[inline(always)]
pub fn is_mirrored(code: u8) -> bool {
    code > NO_ROW
}

/// Where keys of constants lie; see `Range::key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    base: u64,
    /// A step is two to this.
    shift: u32,
    /// Places in two to the `STEP_BITS` steps.
    factor: u32,
}

impl Scale {
    /// The finest scale from the least key to the greatest.
    pub fn new(least: u64, greatest: u64) -> Scale {
        let span = greatest - least;
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(STEP_BITS);
        let steps = (span >> shift) + 1;
        Scale { base: least, shift, factor: (((LAST_PLACE as u64 + 1) << STEP_BITS) / steps) as u32 }
    }

    /// The place of a key that is not below the scale; the one after the last for all above it.
    #[inline(always)]
    fn place(self, key: u64) -> u8 {
        let steps = (key - self.base).wrapping_shr(self.shift).min(1 << STEP_BITS);
        ((steps * self.factor as u64) >> STEP_BITS).min(LAST_PLACE as u64 + 1) as u8
    }

    /// The code of a constant that lies on the scale.
    pub fn code(self, key: u64) -> u8 {
        LOWEST_CODE + self.place(key)
    }

    /// The level of a number; NaN stands for no number.
    #[inline(always)]
    pub fn level(self, range: Range, number: f64) -> u8 {
        let key = range.key(number);
        let level = LOWEST_CODE + 1 + self.place(key.max(self.base));
        let level = if key < self.base { PASSES_NONE } else { level };
        let without = if range.negated() { PASSES_ALL } else { PASSES_NONE };
        if number.is_nan() { without } else { level }
    }

    /// The words that stand for the scale of a range.
    pub fn to_words(self, range: Range) -> [u32; SCALE] {
        [range.0, self.shift | self.factor << 8, self.base as u32, (self.base >> 32) as u32]
    }

    #[inline(always)]
    pub fn of_words([range, steps, low, high]: [u32; SCALE]) -> (Range, Scale) {
        let base = low as u64 | (high as u64) << 32;
        (Range(range), Scale { base, shift: steps & 0xFF, factor: steps >> 8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_never_wrong_about_a_test() {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -7.25,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-310,
            1.0,
            1.0f64.next_up(),
            2.0,
            100.0,
            100.01,
            115.5,
            117.25,
            1e9,
            f64::INFINITY,
        ];
        let mut unsure = 0;
        for range in [Range(4), Range(5)] {
            for (from, least) in numbers.iter().enumerate() {
                for greatest in &numbers[from..] {
                    let ends = [range.key(*least), range.key(*greatest)];
                    let scale = Scale::new(ends[0].min(ends[1]), ends[0].max(ends[1]));
                    assert_eq!(Scale::of_words(scale.to_words(range)), (range, scale));
                    let on_scale = numbers.iter().filter(|&number| least <= number && number <= greatest);
                    for &constant in on_scale {
                        let code = scale.code(range.key(constant));
                        for &number in numbers.iter().chain([&f64::NAN]) {
                            let level = scale.level(range, number);
                            for other in [PASSES_NONE, level, PASSES_ALL] {
                                let less = |code: u8| difference(code, level, other);
                                assert_eq!(less(code), level.saturating_sub(code));
                                assert_eq!(difference(mirrored(code), other, level), less(code));
                                assert!(less(NO_TEST) >= 2 && less(NO_ROW) == 0);
                            }
                            match level.saturating_sub(code) {
                                0 => assert!(!range.passes(number, constant), "{number} {constant}"),
                                1 => unsure += 1,
                                _ => assert!(range.passes(number, constant), "{number} {constant}"),
                            }
                        }
                    }
                }
            }
        }
        assert!(unsure > 0);
    }

    /// How far the levels of a column's two ranges exceed a code.
    fn difference(code: u8, first: u8, second: u8) -> u8 {
        first.saturating_sub(code).max(code.saturating_sub(mirrored(second)))
    }

    #[test]
    fn scales_are_fine() {
        let keys: Vec<u64> = (0..200).map(|at| Range(0).key(112.75 + at as f64 * 0.0225)).collect();
        let scale = Scale::new(keys[0], keys[199]);
        let mut codes: Vec<u8> = keys.iter().map(|&key| scale.code(key)).collect();
        codes.dedup();
        assert!(codes.len() > 120, "{}", codes.len());
    }
}
