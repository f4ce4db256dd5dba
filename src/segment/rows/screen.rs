//! The screen of a group: range tests quantised to a byte each, so that all rows are tested side by side.
//!
//! Rows of a group compare a side of a slot with constants that lie on one *scale*. On it a constant has a
//! *code*: its position, rounded down. A message's number has a *level* on the same scale, and the level less
//! the code decides the test:
//!
//! | difference | the test |
//! |---|---|
//! | 0 or less | fails |
//! | 1 | passes or fails: number and constant share a position, so they themselves are compared |
//! | 2 or more | passes |
//!
//! For example, on a scale from 100 to 200 with 124 positions, `> 150` has the code 2 + 61 = 63. The number
//! 170 has the level 3 + 86 = 89 and passes, 120 has the level 27 and fails, 150.3 has the level 64: unsure.
//! A row without such a test has the code 0, and no level is below 2: it always passes.
//!
//! Two ranges that no row tests both share a column of codes. Codes and levels of the second are mirrored
//! (negated modulo 256), so that there the code less the level decides. Codes of the one are below all
//! mirrored levels of the other, so the larger of both differences is the right one.

use super::groups::MOST_ROWS;
use super::range::Range;

/// Codes that are compared at a time.
pub(super) const LANES: usize = 16;

/// The code of a row that does not have the test.
pub const NO_TEST: u8 = 0;
/// The code that pads a column: no level passes it. It is its own mirror image.
pub const NO_ROW: u8 = 128;
/// A level that passes no test, and one that passes all.
pub const PASSES_NONE: u8 = 2;
const PASSES_ALL: u8 = NO_ROW;

const LOWEST_CODE: u8 = 2;
/// The last position of a constant. `PASSES_ALL` is 2 more than its code.
const LAST_POSITION: u8 = PASSES_ALL - 2 - LOWEST_CODE;

/// Steps of a scale are counted with this many bits before they are scaled down to positions.
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

/// The interval in which the keys of constants lie; see `Range::key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    base: u64,
    /// A step is 2^shift keys.
    shift: u32,
    /// Positions in 2^`STEP_BITS` steps.
    factor: u32,
}

impl Scale {
    /// The finest scale from the least key to the greatest.
    pub fn new(least: u64, greatest: u64) -> Scale {
        let span = greatest - least;
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(STEP_BITS);
        let steps = (span >> shift) + 1;
        Scale { base: least, shift, factor: (((LAST_POSITION as u64 + 1) << STEP_BITS) / steps) as u32 }
    }

    /// The position of a key that is not below the scale; the one after the last for all above it.
    #[inline(always)]
    fn position(self, key: u64) -> u8 {
        let steps = (key - self.base).wrapping_shr(self.shift).min(1 << STEP_BITS);
        ((steps * self.factor as u64) >> STEP_BITS).min(LAST_POSITION as u64 + 1) as u8
    }

    /// The code of a constant that lies on the scale.
    pub fn code(self, key: u64) -> u8 {
        LOWEST_CODE + self.position(key)
    }

    /// The level of a number; NaN stands for no number.
    #[inline(always)]
    pub fn level(self, range: Range, number: f64) -> u8 {
        let key = range.key(number);
        let level = LOWEST_CODE + 1 + self.position(key.max(self.base));
        let level = if key < self.base { PASSES_NONE } else { level };
        let without = if range.negated() { PASSES_ALL } else { PASSES_NONE };
        if number.is_nan() { without } else { level }
    }

    /// The scale and its range as words of the file.
    pub fn to_words(self, range: Range) -> [u32; SCALE] {
        [range.0, self.shift | self.factor << 8, self.base as u32, (self.base >> 32) as u32]
    }

    #[inline(always)]
    pub fn of_words([range, steps, low, high]: [u32; SCALE]) -> (Range, Scale) {
        let base = low as u64 | (high as u64) << 32;
        (Range(range), Scale { base, shift: steps & 0xFF, factor: steps >> 8 })
    }
}

/// Rows that are read from verdicts at a time.
const WORD: usize = 8;

/// A group's scales, two for each column, and its codes.
#[derive(Default)]
pub struct Screen<'a> {
    pub scales: &'a [[u32; 2 * SCALE]],
    pub codes: &'a [u8],
    /// Whether all rows have a test on the first scale.
    pub first_column_full: bool,
}

/// The outcome for each row: 0 if it fails, 1 if its constants must be compared, more if it passes.
pub struct Verdicts([u8; MOST_ROWS]);

impl Screen<'_> {
    /// The verdicts on the rows of the group; `None` if all fail by the test on the first scale.
    #[inline]
    pub fn verdicts(&self, sides: &[f64]) -> Option<Verdicts> {
        if self.first_column_full && levels(&self.scales[0], sides).0 == PASSES_NONE {
            return None;
        }
        let height = self.height();
        let mut verdicts = [0; MOST_ROWS];
        verdicts[..height].fill(u8::MAX);
        for (scales, codes) in self.scales.iter().zip(self.codes.chunks_exact(height)) {
            let (first, second) = levels(scales, sides);
            let second = mirrored(second);
            let verdicts = verdicts.as_chunks_mut::<LANES>().0.iter_mut();
            // A fixed number of bytes: the compiler turns these loops into a few vector instructions.
            for (verdicts, codes) in verdicts.zip(codes.as_chunks::<LANES>().0) {
                for (verdict, &code) in verdicts.iter_mut().zip(codes) {
                    let of_column = first.saturating_sub(code).max(code.saturating_sub(second));
                    *verdict = of_column.min(*verdict);
                }
            }
        }
        Some(Verdicts(verdicts))
    }

    /// Whether a row's tests pass, given their constants.
    pub fn passes(&self, row: usize, constants: &[f64], sides: &[f64]) -> bool {
        let mut constants = constants.iter();
        let mut passes = true;
        for (scales, codes) in self.scales.iter().zip(self.codes.chunks_exact(self.height())) {
            let code = codes[row];
            if code == NO_TEST {
                continue;
            }
            let (range, _) = Scale::of_words(halves(scales)[is_mirrored(code) as usize]);
            passes &= constants.next().is_some_and(|&constant| range.passes(sides[range.side()], constant));
        }
        passes
    }

    /// How many codes a column has.
    #[inline(always)]
    fn height(&self) -> usize {
        self.codes.len() / self.scales.len()
    }
}

#[inline(always)]
fn halves(scales: &[u32; 2 * SCALE]) -> &[[u32; SCALE]] {
    scales.as_chunks().0
}

/// The levels of a message's numbers on the scales of a column.
#[inline(always)]
fn levels(scales: &[u32; 2 * SCALE], sides: &[f64]) -> (u8, u8) {
    let level = |scale: [u32; SCALE]| {
        let (range, scale) = Scale::of_words(scale);
        scale.level(range, sides[range.side()])
    };
    (level(halves(scales)[0]), level(halves(scales)[1]))
}

impl Verdicts {
    /// Writes the rows that do not fail to `rows` and counts them. One place beyond them is overwritten.
    #[inline]
    pub fn survivors(&self, rows: &mut [u8; MOST_ROWS + 1]) -> usize {
        let mut count = 0;
        for (word, verdicts) in self.0.as_chunks::<WORD>().0.iter().enumerate() {
            if u64::from_ne_bytes(*verdicts) == 0 {
                continue;
            }
            // Which rows pass is unpredictable, so nothing branches on it.
            for (at, &verdict) in verdicts.iter().enumerate() {
                rows[count] = (word * WORD + at) as u8;
                count += (verdict != 0) as usize;
            }
        }
        count
    }

    /// Whether a row that does not fail passes without comparing its constants.
    #[inline(always)]
    pub fn is_sure(&self, row: usize) -> bool {
        self.0[row] > 1
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
