//! Sets of trie nodes, as lists in no particular order.

/// Puts the nodes that pass first, and counts them.
pub(super) fn partition(nodes: &mut [u32], passes: impl Fn(u32) -> bool) -> usize {
    let mut count = 0;
    for at in 0..nodes.len() {
        if passes(nodes[at]) {
            nodes.swap(count, at);
            count += 1;
        }
    }
    count
}

/// A hash that does not depend on the order of a set's members, which saves sorting them.
pub(super) fn hash_set(nodes: &[u32]) -> u64 {
    nodes.iter().fold(nodes.len() as u64, |sum, &node| {
        let mixed = (node as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        sum.wrapping_add((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9))
    })
}

/// Whether two lists without repetitions hold the same nodes.
pub(super) fn same_set(a: &[u32], b: &[u32], marks: &mut Marks) -> bool {
    if a.len() != b.len() {
        return false;
    }
    marks.clear();
    a.iter().for_each(|&node| marks.add(node));
    b.iter().all(|&node| marks.has(node))
}

/// A set of trie nodes that is emptied at no cost: what bears an older mark is not in it.
pub(super) struct Marks {
    marks: Vec<u32>,
    mark: u32,
}

impl Marks {
    pub(super) fn new(nodes: usize) -> Marks {
        Marks { marks: vec![0; nodes], mark: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.marks.fill(0);
            self.mark = 1;
        }
    }

    #[inline]
    pub(super) fn add(&mut self, node: u32) {
        self.marks[node as usize] = self.mark;
    }

    #[inline]
    pub(super) fn has(&self, node: u32) -> bool {
        self.marks[node as usize] == self.mark
    }
}
