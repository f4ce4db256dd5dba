//! The tree search of Where-Filter and Return-Select (seed 001 §6.4.1): depth first below an element.

use tamis::document::Document;
use tamis::ids::{ElementId, NameId};
use tamis::query::ast::Axis;

/// Where in the tree a search is: until an element ends, these steps may be taken next, by children and by
/// any below.
#[derive(Clone, Copy)]
struct Level {
    end: ElementId,
    near: u64,
    far: u64,
}

#[derive(Default)]
pub struct Search {
    levels: Vec<Level>,
}

impl Search {
    /// Calls `found` with each element that the steps lead to from `start`, once and in document order, until it
    /// says that this was enough.
    pub fn below(
        &mut self,
        document: &Document,
        steps: &[(Axis, NameId)],
        start: ElementId,
        mut found: impl FnMut(ElementId) -> bool,
    ) {
        let open = |step: usize, near: &mut u64, far: &mut u64| match steps[step].0 {
            Axis::Child => *near |= 1 << step,
            Axis::Descendant => *far |= 1 << step,
        };
        let end = document.element(start).end;
        let mut level = Level { end, near: 0, far: 0 };
        open(0, &mut level.near, &mut level.far);
        self.levels.clear();
        let mut at = ElementId(start.0 + 1);
        while at != end {
            while at == level.end {
                level = self.levels.pop().expect("a level above");
            }
            let element = document.element(at);
            let (mut near, mut far, mut reached) = (0, level.far, false);
            let mut taken = level.near | level.far;
            while taken != 0 {
                let step = taken.trailing_zeros() as usize;
                taken &= taken - 1;
                if steps[step].1 == element.name {
                    if step + 1 == steps.len() {
                        reached = true;
                    } else {
                        open(step + 1, &mut near, &mut far);
                    }
                }
            }
            if reached && found(at) {
                return;
            }
            let next = ElementId(at.0 + 1);
            if element.end != next && near | far != 0 {
                self.levels.push(level);
                level = Level { end: element.end, near, far };
                at = next;
            } else {
                at = element.end;
            }
        }
    }
}
