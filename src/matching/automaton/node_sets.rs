//! Sets of trie nodes, as lists in no particular order.

use crate::ids::TrieNodeId;
use crate::util::epoch_set::EpochSet;
use crate::util::hash::{GOLDEN, folded_multiply};

/// Puts the nodes that pass first, and counts them.
pub(super) fn partition(nodes: &mut [TrieNodeId], passes: impl Fn(TrieNodeId) -> bool) -> usize {
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
pub(super) fn hash_set(nodes: &[TrieNodeId]) -> u64 {
    let hashes = nodes.iter().map(|&node| folded_multiply(node.0 as u64 ^ GOLDEN, GOLDEN));
    hashes.fold(nodes.len() as u64, u64::wrapping_add)
}

/// Whether two lists without repetitions hold the same nodes.
pub(super) fn same_set(a: &[TrieNodeId], b: &[TrieNodeId], members: &mut EpochSet) -> bool {
    if a.len() != b.len() {
        return false;
    }
    members.clear();
    for &node in a {
        members.insert(node.0);
    }
    b.iter().all(|&node| members.contains(node.0))
}
