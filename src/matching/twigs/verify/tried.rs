//! The ranges of elements that `//` steps were tried on. A step that is tried below an element is tried on a whole range,
//! because the elements below it are consecutive in pre-order.

use std::collections::BTreeMap;

/// The end of each range by step and start. The ranges of a step are disjoint.
///
/// One path adds about as many ranges as the message has elements, however many steps it has. A walk visits an element
/// before those inside it, so a step keeps the ranges of its outermost elements only. No element is outermost for two
/// steps of a path: the walk reaches the later step below an element on which the earlier one was tried.
#[derive(Default)]
pub struct TriedRanges {
    ranges: BTreeMap<(u32, u32), u32>,
}

/// After every element.
const NEVER: (u32, u32) = (u32::MAX, u32::MAX);

impl TriedRanges {
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Memory in bytes, approximately.
    pub fn bytes(&self) -> usize {
        self.ranges.len() * size_of::<((u32, u32), u32)>()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The first range of a step that ends after an element.
    pub fn next(&self, step: u32, element: u32) -> (u32, u32) {
        if self.ranges.is_empty() {
            return NEVER;
        }
        let before = self.ranges.range(..=(step, element)).next_back();
        let after = || self.ranges.range((step, element)..).next();
        let ending_after = |&(&(at, _), &end): &(&(u32, u32), &u32)| at == step && end > element;
        let found = before.filter(ending_after).or_else(|| after().filter(ending_after));
        found.map_or(NEVER, |(&(_, start), &end)| (start, end))
    }

    /// Adds a range, which takes in those that it meets.
    pub fn add(&mut self, step: u32, mut start: u32, mut end: u32) {
        while let Some((&(at, first), &last)) = self.ranges.range(..=(step, end)).next_back() {
            if at != step || last < start {
                break;
            }
            if first <= start && end <= last {
                return;
            }
            (start, end) = (start.min(first), end.max(last));
            self.ranges.remove(&(at, first));
        }
        self.ranges.insert((step, start), end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_one_set_of_elements() {
        const ELEMENTS: u32 = 40;
        let mut tried = TriedRanges::default();
        let mut expected = [[false; ELEMENTS as usize]; 3];
        let mut random = 1_u32;
        for _ in 0..300 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (step, start, length) = (random >> 8 & 1, (random >> 12) % 36, 1 + (random >> 20) % 4);
            tried.add(step, start, start + length);
            expected[step as usize][start as usize..(start + length) as usize].fill(true);
            for (step, expected) in expected.iter().enumerate() {
                for element in 0..ELEMENTS {
                    let (start, end) = tried.next(step as u32, element);
                    assert!(element < end);
                    assert_eq!(start <= element, expected[element as usize], "{step} {element}");
                    let between = element.max(start).min(ELEMENTS) as usize;
                    assert!(!expected[element as usize..between].contains(&true));
                }
            }
        }
        let runs = |set: &[bool]| set.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        assert_eq!(tried.len(), expected.iter().map(|set| runs(set)).sum::<usize>());
    }
}
