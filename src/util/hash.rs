//! Hash mixing: fast and not cryptographic. Where messages could choose colliding keys, the caller seeds it.

/// An odd number whose bits look random: 2⁶⁴ divided by the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Adds a word to a hash by one multiplication. The upper bits of the result are the well-mixed ones.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(GOLDEN)
}

/// Both halves of the 128-bit product, folded: all bits of the result are well mixed. Segment files contain
/// tables that are placed by this function, so changing it changes their format.
#[inline(always)]
pub fn folded_multiply(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}
