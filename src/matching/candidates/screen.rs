//! Screening the rows of a group: all at once, by their codes; see `segment::rows::screen`.

use crate::matching::findings::Findings;
use crate::segment::rows::groups::{LANES, MOST_ROWS};
use crate::segment::rows::screen::{NO_TEST, PASSES_NONE, SCALE, Scale, is_mirrored, mirrored};

/// Rows are taken from verdicts so many at a time.
const WORD: usize = 8;

/// The scales of a group, two for each column, and its codes.
#[derive(Default)]
pub struct Screen<'a> {
    pub scales: &'a [[u32; 2 * SCALE]],
    pub codes: &'a [u8],
    /// Whether all rows have a test on the first scale.
    pub is_led: bool,
}

/// What a screen says of each row: 0 if it fails, 1 if only its tests can tell, more if it passes.
pub struct Verdicts([u8; MOST_ROWS]);

impl Screen<'_> {
    /// The verdicts on the rows of the group; `None` if all fail by the test that leads.
    #[inline]
    pub fn verdicts(&self, findings: &Findings) -> Option<Verdicts> {
        if self.is_led && levels(&self.scales[0], findings).0 == PASSES_NONE {
            return None;
        }
        let height = self.height();
        let mut verdicts = [0; MOST_ROWS];
        verdicts[..height].fill(u8::MAX);
        for (scales, codes) in self.scales.iter().zip(self.codes.chunks_exact(height)) {
            let (first, second) = levels(scales, findings);
            let second = mirrored(second);
            let verdicts = verdicts.as_chunks_mut::<LANES>().0.iter_mut();
            // Bytes of a fixed number: these loops become a handful of instructions.
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
    pub fn passes(&self, row: usize, constants: &[f64], findings: &Findings) -> bool {
        let mut constants = constants.iter();
        let mut passes = true;
        for (scales, codes) in self.scales.iter().zip(self.codes.chunks_exact(self.height())) {
            let code = codes[row];
            if code == NO_TEST {
                continue;
            }
            let (range, _) = Scale::of_words(halves(scales)[is_mirrored(code) as usize]);
            passes &= constants.next().is_some_and(|&constant| findings.passes(range, constant));
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
fn levels(scales: &[u32; 2 * SCALE], findings: &Findings) -> (u8, u8) {
    let level = |scale: [u32; SCALE]| {
        let (range, scale) = Scale::of_words(scale);
        scale.level(range, findings.side(range.side()))
    };
    (level(halves(scales)[0]), level(halves(scales)[1]))
}

impl Verdicts {
    /// Writes the rows that do not fail to `rows`, and counts them. One place more is written to.
    #[inline]
    pub fn survivors(&self, rows: &mut [u8; MOST_ROWS + 1]) -> usize {
        let mut count = 0;
        for (word, verdicts) in self.0.as_chunks::<WORD>().0.iter().enumerate() {
            if u64::from_ne_bytes(*verdicts) == 0 {
                continue;
            }
            // Which of a few rows pass cannot be foretold, so nothing branches on it.
            for (at, &verdict) in verdicts.iter().enumerate() {
                rows[count] = (word * WORD + at) as u8;
                count += (verdict != 0) as usize;
            }
        }
        count
    }

    /// Whether a row that does not fail passes for sure.
    #[inline(always)]
    pub fn is_sure(&self, row: usize) -> bool {
        self.0[row] > 1
    }
}
