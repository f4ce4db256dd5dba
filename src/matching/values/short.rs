//! Short values, packed into one word, so that comparing and hashing them takes a few instructions.

/// The longest value that fits a word beside its length.
const MOST_BYTES: usize = 7;
/// Instead of a length: the value is a rank.
const RANK: u64 = 0xFF << 56;

/// A value of up to seven bytes with its length, or the rank of an element among its siblings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortValue(u64);

impl ShortValue {
    pub(crate) const EMPTY: ShortValue = ShortValue(0);

    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<ShortValue> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as u64;
        let len = bytes.len();
        let word = match len {
            0 => 0,
            // Two of these may be the same byte, in the same place.
            1 => bytes[0] as u64,
            2..=3 => bytes[0] as u64 | (bytes[1] as u64) << 8 | (bytes[len - 1] as u64) << (8 * (len - 1)),
            // The last four bytes, without those that are among the first four.
            4..=MOST_BYTES => half(0) | half(len - 4) >> (8 * (8 - len)) << 32,
            _ => return None,
        };
        Some(ShortValue(word | (len as u64) << 56))
    }

    pub(crate) fn of_rank(rank: u32) -> ShortValue {
        ShortValue(RANK | rank as u64)
    }

    /// The rank, if the value is one.
    pub(crate) fn rank(self) -> Option<u32> {
        (self.0 & RANK == RANK).then_some(self.0 as u32)
    }

    /// For hashing.
    #[inline(always)]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The bytes of a value that is no rank, padded, and its length.
    pub(crate) fn bytes(self) -> ([u8; 8], usize) {
        (self.0.to_le_bytes(), (self.0 >> 56) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_short_values() {
        let letters = b"abcdefgh";
        for len in 0..=MOST_BYTES {
            for at in 0..=len {
                let mut value = letters[..len].to_vec();
                if let Some(byte) = value.get_mut(at) {
                    *byte = 0;
                }
                let (bytes, count) = ShortValue::of(&value).expect("short").bytes();
                assert_eq!(&bytes[..count], value.as_slice());
                assert!(ShortValue::of(&value).expect("short").rank().is_none());
            }
        }
        assert!(ShortValue::of(letters).is_none());
        assert_eq!(ShortValue::of_rank(7).rank(), Some(7));
    }
}
