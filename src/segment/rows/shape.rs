//! The shape of a row: how far below each anchor its linear paths end. Settling uses it.
//!
//! A line that passes through an anchor has a *reach*, in four bits: how far below the anchor's
//! element it ends. Zero is for lines that do not pass through it.

use bytemuck::{Pod, Zeroable};

use super::simple::MOST_SIMPLE;
use crate::query::linear_path::Reach;

/// The highest position that a shape can count to.
pub const MOST_COUNTED: u32 = 255;

const EXACTLY: u32 = 1;
const AT_LEAST: u32 = 7;
const UNCLEAR: u32 = 15;

fn code(reach: Option<Reach>) -> u32 {
    match reach {
        None => 0,
        Some(Reach::Exactly(steps)) if EXACTLY + steps <= AT_LEAST => EXACTLY + steps,
        Some(Reach::AtLeast(steps)) if AT_LEAST + steps < UNCLEAR => AT_LEAST + steps,
        Some(_) => UNCLEAR,
    }
}

/// The lowest bit of each of four codes that is not zero.
#[inline]
fn lowest(codes: u32) -> u32 {
    (codes | codes >> 1 | codes >> 2 | codes >> 3) & 0x1111
}

#[inline]
fn reach(code: u32) -> Option<Reach> {
    match code {
        0 => None,
        UNCLEAR => Some(Reach::Unclear),
        code if code <= AT_LEAST => Some(Reach::Exactly(code - EXACTLY)),
        code => Some(Reach::AtLeast(code - AT_LEAST)),
    }
}

/// How one line lies to the first anchors of its alternative, and whether a position counts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Under(u32);

impl Under {
    const COUNTED: u32 = 1 << 31;

    pub fn new(reaches: impl Iterator<Item = Option<Reach>>, counted: bool) -> Under {
        let codes = reaches.take(MOST_SIMPLE).enumerate();
        let codes: u32 = codes.map(|(anchor, reach)| code(reach) << (4 * anchor)).sum();
        Under(codes | if counted { Self::COUNTED } else { 0 })
    }

    /// Whether the line passes through an anchor.
    pub fn is_through(self, anchor: usize) -> bool {
        self.0 >> (4 * anchor) & 0xF != 0
    }

    /// The same without an anchor: those after it move up.
    pub fn without(self, anchor: usize) -> Under {
        let codes = self.0 & !Self::COUNTED;
        let before = codes & ((1 << (4 * anchor)) - 1);
        let after = codes >> (4 * anchor + 4) << (4 * anchor);
        Under(before | after | self.0 & Self::COUNTED)
    }
}

/// How all lines of a simple row lie to its anchors, the line of the access test first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct Shape(u64);

/// A position that counts the elements of an anchor that some lines hold of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    pub anchor: u32,
    pub position: u32,
    /// A bit per line.
    pub lines: u32,
}

impl Shape {
    /// Four bits per anchor and line, then position, counted lines and the anchor to count at.
    pub fn new(lines: impl Iterator<Item = Under>, counted: Option<(u32, u32)>) -> Shape {
        let mut shape = 0;
        for (line, under) in lines.enumerate() {
            for anchor in 0..MOST_SIMPLE {
                shape |= ((under.0 >> (4 * anchor) & 0xF) as u64) << (16 * anchor + 4 * line);
            }
            shape |= ((under.0 & Under::COUNTED != 0) as u64) << (56 + line);
        }
        let (anchor, position) = counted.unwrap_or((0, 0));
        Shape(shape | (position as u64) << 48 | (anchor as u64) << 60)
    }

    #[inline]
    pub fn reach(self, anchor: u32, line: u32) -> Option<Reach> {
        reach((self.0 >> (16 * anchor + 4 * line)) as u32 & 0xF)
    }

    /// The first line that ends a fixed number of steps below an anchor, with that number.
    #[inline]
    pub fn lead(self, anchor: u32) -> Option<(u32, u32)> {
        let codes = self.codes(anchor);
        // Only codes of other reaches have their highest bit set.
        let exact = lowest(codes) & !(codes >> 3);
        let line = exact.trailing_zeros() / 4;
        (exact != 0).then(|| (line, (codes >> (4 * line) & 0xF) - EXACTLY))
    }

    /// Whether the reach of some line through an anchor is unclear.
    #[inline]
    pub fn is_unclear(self, anchor: u32) -> bool {
        let codes = self.codes(anchor);
        codes & codes >> 1 & codes >> 2 & codes >> 3 & 0x1111 != 0
    }

    /// The reaches of all lines through an anchor, four bits each.
    #[inline]
    fn codes(self, anchor: u32) -> u32 {
        (self.0 >> (16 * anchor)) as u32 & 0xFFFF
    }

    /// A bit per line that passes through an anchor.
    #[inline]
    pub fn lines_of(self, anchor: u32) -> u32 {
        // These four side by side.
        let some = lowest(self.codes(anchor));
        (some | some >> 3 | some >> 6 | some >> 9) & 0xF
    }

    #[inline]
    pub fn counted(self) -> Option<Counted> {
        let counted = Counted {
            anchor: (self.0 >> 60) as u32,
            position: (self.0 >> 48) as u32 & 0xFF,
            lines: (self.0 >> 56) as u32 & 0xF,
        };
        (counted.position > 0).then_some(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaches_survive_their_code_or_become_unclear() {
        for steps in 0..10 {
            for given in [Reach::Exactly(steps), Reach::AtLeast(steps.max(1))] {
                let read = reach(code(Some(given)));
                assert!(read == Some(given) || read == Some(Reach::Unclear));
            }
        }
        assert_eq!(reach(code(Some(Reach::Exactly(6)))), Some(Reach::Exactly(6)));
        assert_eq!(reach(code(Some(Reach::AtLeast(7)))), Some(Reach::AtLeast(7)));
    }

    #[test]
    fn an_anchor_less_moves_the_others_up() {
        let reaches = [Some(Reach::Exactly(0)), None, Some(Reach::AtLeast(2))];
        let under = Under::new(reaches.into_iter(), true);
        assert_eq!((under.is_through(0), under.is_through(1), under.is_through(2)), (true, false, true));
        assert_eq!(under.without(1), Under::new([reaches[0], reaches[2]].into_iter(), true));
        assert_eq!(under.without(0), Under::new([reaches[1], reaches[2]].into_iter(), true));
        assert_eq!(under.without(2), Under::new([reaches[0]].into_iter(), true));
    }

    #[test]
    fn a_shape_gives_back_what_it_was_made_of() {
        let first = Under::new([Some(Reach::Exactly(0)), None].into_iter(), true);
        let second = Under::new([Some(Reach::AtLeast(2)), Some(Reach::Exactly(3))].into_iter(), false);
        let unclear = Under::new([Some(Reach::Unclear)].into_iter(), false);
        let shape = Shape::new([first, second].into_iter(), Some((1, 4)));
        assert_eq!(shape.reach(0, 0), Some(Reach::Exactly(0)));
        assert_eq!(shape.reach(0, 1), Some(Reach::AtLeast(2)));
        assert_eq!(shape.reach(1, 1), Some(Reach::Exactly(3)));
        assert_eq!((shape.lead(0), shape.lead(1), shape.lead(2)), (Some((0, 0)), Some((1, 3)), None));
        assert!(!shape.is_unclear(0) && Shape::new([unclear].into_iter(), None).is_unclear(0));
        assert_eq!((shape.lines_of(0), shape.lines_of(1), shape.lines_of(2)), (0b11, 0b10, 0));
        assert_eq!(shape.counted(), Some(Counted { anchor: 1, position: 4, lines: 1 }));
        assert_eq!(Shape::new([first].into_iter(), None).counted(), None);
    }
}
