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

use crate::index::range::Range;

/// The code of a row that does not have the test.
pub const NO_TEST: u8 = 0;
/// The code of what fills up a column: no level passes it.
pub const NO_ROW: u8 = u8::MAX;
/// A level that passes no test, and one that passes all.
pub const PASSES_NONE: u8 = 2;
const PASSES_ALL: u8 = u8::MAX;

const LOWEST_CODE: u8 = 2;
/// The last place of a constant. `PASSES_ALL` is 2 more than its code.
const LAST_PLACE: u64 = (PASSES_ALL - 2 - LOWEST_CODE) as u64;

/// Words of a scale with its range.
pub const SCALE: usize = 4;

/// Where keys of constants lie; see `Range::key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    base: u64,
    shift: u32,
}

impl Scale {
    /// The finest scale from the least key to the greatest.
    pub fn new(least: u64, greatest: u64) -> Scale {
        let span = greatest - least;
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(u8::BITS);
        Scale { base: least, shift: shift + (span >> shift > LAST_PLACE) as u32 }
    }

    /// The code of a constant that lies on the scale.
    pub fn code(self, key: u64) -> u8 {
        LOWEST_CODE + ((key - self.base) >> self.shift) as u8
    }

    /// The words that stand for the scale of a range.
    pub fn to_words(self, range: Range) -> [u32; SCALE] {
        [range.0, self.shift, self.base as u32, (self.base >> 32) as u32]
    }

    #[inline(always)]
    pub fn of_words([range, shift, low, high]: [u32; SCALE]) -> (Range, Scale) {
        (Range(range), Scale { base: low as u64 | (high as u64) << 32, shift })
    }

    /// The level of a number; NaN stands for no number.
    #[inline(always)]
    pub fn level(self, range: Range, number: f64) -> u8 {
        let key = range.key(number);
        let place = key.saturating_sub(self.base).wrapping_shr(self.shift).min(LAST_PLACE + 1) as u8;
        let level = if key < self.base { PASSES_NONE } else { LOWEST_CODE + 1 + place };
        let without = if range.negated() { PASSES_ALL } else { PASSES_NONE };
        if number.is_nan() { without } else { level }
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
                            assert!(level.saturating_sub(NO_TEST) >= 2 && level.saturating_sub(NO_ROW) == 0);
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

    #[test]
    fn scales_are_fine() {
        let keys: Vec<u64> = (0..200).map(|at| Range(0).key(112.75 + at as f64 * 0.0225)).collect();
        let scale = Scale::new(keys[0], keys[199]);
        let mut codes: Vec<u8> = keys.iter().map(|&key| scale.code(key)).collect();
        codes.dedup();
        assert!(codes.len() > 100, "{}", codes.len());
    }
}
