//! Which constants of a segment a value equals, and its number: a direct-mapped cache for values of up to 16 bytes.
//!
//! Streams repeat values far more often than they have new ones, and a miss takes two hash lookups and parsing a
//! number.

use super::short::ShortValue;
use crate::query::number::number;
use crate::segment::format::NONE;
use crate::segment::format::columns::View;
use crate::tuning::VALUE_CACHE_SLOTS;
use crate::util::hash::mix;

/// A value as a segment sees it.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    /// The text constant and the number constant that it equals, or `NONE`.
    pub(crate) text: u32,
    pub(crate) constant: u32,
    pub(crate) number: f64,
}

impl Value {
    fn of(view: &View<'_>, bytes: &[u8], is_numeric: bool) -> Value {
        let number = if is_numeric { number(bytes) } else { f64::NAN };
        Value { text: view.text_constant(bytes), constant: view.number_constant(number), number }
    }
}

/// Longer values are looked up each time.
const MOST_BYTES: usize = 16;

/// One slot for each hash; a newer value replaces an older one.
pub(crate) struct ValueCache {
    slots: Vec<(Packed, Value)>,
}

/// The bytes of a value of up to 16 bytes, in words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    low: u64,
    high: u64,
    len: u64,
}

impl Packed {
    /// The first and the last bytes, which may overlap.
    #[inline]
    fn of(bytes: &[u8]) -> Option<Packed> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let (low, high) = match bytes.len() {
            0 => (0, 0),
            len @ 1..=3 => {
                (bytes[0] as u64 | (bytes[len / 2] as u64) << 8 | (bytes[len - 1] as u64) << 16, 0)
            }
            len @ 4..=7 => (half(0) as u64 | (half(len - 4) as u64) << 32, 0),
            len @ 8..=MOST_BYTES => (word(0), word(len - 8)),
            _ => return None,
        };
        Some(Packed { low, high, len: bytes.len() as u64 })
    }

    #[inline]
    fn slot(self) -> usize {
        (mix(self.high, self.low ^ self.len << 57) >> (64 - VALUE_CACHE_SLOTS.trailing_zeros())) as usize
    }
}

impl Default for ValueCache {
    fn default() -> ValueCache {
        let free = Packed { low: 0, high: 0, len: u64::MAX };
        ValueCache {
            slots: vec![(free, Value { text: NONE, constant: NONE, number: f64::NAN }); VALUE_CACHE_SLOTS],
        }
    }
}

impl ValueCache {
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    /// A short value or a rank as the segment sees it.
    pub(crate) fn short_value(&mut self, view: &View<'_>, value: ShortValue) -> Value {
        match value.rank() {
            Some(rank) => {
                let number = rank as f64;
                Value { text: NONE, constant: view.number_constant(number), number }
            }
            None => {
                let (bytes, len) = value.bytes();
                self.value(view, &bytes[..len], true)
            }
        }
    }

    /// A value as the segment sees it. If it is not numeric, its number may be missing.
    #[inline]
    pub(crate) fn value(&mut self, view: &View<'_>, bytes: &[u8], is_numeric: bool) -> Value {
        let Some(packed) = Packed::of(bytes) else {
            return Value::of(view, bytes, is_numeric);
        };
        let (cached, value) = &mut self.slots[packed.slot()];
        if *cached != packed {
            (*cached, *value) = (packed, Value::of(view, bytes, true));
        }
        *value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_distinguishes_values() {
        let mut seen = std::collections::HashMap::new();
        for len in 0..=MOST_BYTES {
            for at in 0..len {
                for byte in [b'a', b'b'] {
                    let mut bytes = vec![b'x'; len];
                    bytes[at] = byte;
                    let Packed { low, high, len } = Packed::of(&bytes).expect("short");
                    assert!(seen.insert((low, high, len), bytes.clone()).is_none_or(|other| other == bytes));
                }
            }
        }
        assert!(Packed::of(&[b'x'; MOST_BYTES + 1]).is_none());
    }
}
