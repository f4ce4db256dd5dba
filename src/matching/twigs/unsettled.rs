//! A simple row that passed its tests but has an anchor bound by several elements, with what settling it starts from.

use crate::ids::{AnchorId, ConditionId, SegmentQuery};
use crate::segment::format::columns::View;
use crate::segment::rows::shape::Shape;
use crate::segment::rows::simple::MOST_SIMPLE;
use crate::util::bitset::{Bits, ones};

/// A row to settle.
pub struct Unsettled {
    /// The conditions at the end of its linear paths, that of the access test first.
    pub(super) lines: [ConditionId; 1 + MOST_SIMPLE],
    pub(super) anchors: [AnchorId; MOST_SIMPLE],
    pub query: SegmentQuery,
    /// A bit per anchor that bound several elements.
    pub(super) several: u32,
    pub(super) shape: Shape,
    pub(super) lead: Option<LeadingPath>,
}

impl Unsettled {
    /// A simple row with N positives and N anchors.
    pub fn of<const N: usize, const W: usize>(row: &[u32; W]) -> Unsettled {
        let (mut lines, mut anchors) = ([ConditionId::NONE; 1 + MOST_SIMPLE], [AnchorId::NONE; MOST_SIMPLE]);
        lines[0] = ConditionId(row[2 * N]);
        lines[1..=N].copy_from_slice(bytemuck::cast_slice(&row[..N]));
        anchors[..N].copy_from_slice(bytemuck::cast_slice(&row[N..2 * N]));
        Unsettled {
            lines,
            anchors,
            query: SegmentQuery(row[W - 1]),
            several: 0,
            shape: Shape::default(),
            lead: None,
        }
    }

    /// Adds how its paths lie to its anchors, and which anchors bound several elements.
    pub fn add_shape(&mut self, view: View<'_>, bound_twice: &Bits) {
        let several = |(at, &anchor): (usize, &AnchorId)| {
            ((anchor.is_some() && bound_twice.get(anchor.0)) as u32) << at
        };
        self.several = self.anchors.iter().enumerate().map(several).sum();
        self.shape = view.shape_of(self.query);
        self.lead = self.find_lead();
    }

    /// The path to begin with, if one anchor bound several elements and a path ends a fixed number of steps below it.
    #[inline]
    fn find_lead(&self) -> Option<LeadingPath> {
        if !self.several.is_power_of_two() || self.shape.counted().is_some() {
            return None;
        }
        let anchor = self.several.trailing_zeros();
        let (line, steps) = self.shape.lead(anchor)?;
        Some(LeadingPath { anchor, line, steps })
    }

    /// The anchors among `several` that lie directly below an anchor with these paths.
    pub(super) fn below(&self, lines: u32) -> u32 {
        let inside = |anchor: u32, lines: u32| {
            let own = self.shape.lines_of(anchor);
            own & lines == own && own != lines
        };
        let topmost = |&anchor: &u32| {
            let above = |other| inside(other, lines) && inside(anchor, self.shape.lines_of(other));
            !ones(self.several as u64).any(above)
        };
        let below = ones(self.several as u64).filter(|&anchor| inside(anchor, lines));
        below.filter(topmost).map(|anchor| 1 << anchor).sum()
    }
}

/// A path whose occurrences lead to the elements of an anchor, so many steps above them.
#[derive(Clone, Copy)]
pub(super) struct LeadingPath {
    pub(super) anchor: u32,
    pub(super) line: u32,
    pub(super) steps: u32,
}
