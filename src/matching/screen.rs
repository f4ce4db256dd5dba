//! Screening the rows of a group: all at once, by their codes; see `index::screen`.

use crate::index::groups::{LANES, LED, MOST_ROWS};
use crate::index::screen::{PASSES_NONE, SCALE, Scale};
use crate::matching::findings::Findings;

/// Rows are taken from verdicts so many at a time.
const WORD: usize = 8;

/// The scales and codes of a group.
pub struct Screen<'a> {
    pub scales: &'a [[u32; SCALE]],
    pub codes: &'a [u8],
    pub flags: u32,
}

/// What a screen says of each row: 0 if it fails, 1 if only its tests can tell, more if it passes.
pub struct Verdicts([u8; MOST_ROWS]);

impl Screen<'_> {
    /// The verdicts on the rows of the group; `None` if all fail, for a number that they share.
    #[inline]
    pub fn verdicts(&self, findings: &Findings) -> Option<Verdicts> {
        if self.flags & LED != 0 && level(self.scales[0], findings) == PASSES_NONE {
            return None;
        }
        let mut verdicts = [0; MOST_ROWS];
        let rows = self.codes.len() / self.scales.len();
        verdicts[..rows].fill(u8::MAX);
        for (&scale, codes) in self.scales.iter().zip(self.codes.chunks_exact(rows)) {
            let level = level(scale, findings);
            // Bytes of a fixed number: these loops become a handful of instructions.
            for (verdicts, codes) in
                verdicts.as_chunks_mut::<LANES>().0.iter_mut().zip(codes.as_chunks::<LANES>().0)
            {
                for (verdict, &code) in verdicts.iter_mut().zip(codes) {
                    *verdict = level.saturating_sub(code).min(*verdict);
                }
            }
        }
        Some(Verdicts(verdicts))
    }
}

#[inline(always)]
fn level(scale: [u32; SCALE], findings: &Findings) -> u8 {
    let (range, scale) = Scale::of_words(scale);
    scale.level(range, findings.side(range.side()))
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
