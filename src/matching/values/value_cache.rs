//! What short values are, remembered: streams repeat them far more often than they bring new ones.

use super::probe_cache::Short;
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
    fn of(view: View<'_>, bytes: &[u8], is_numeric: bool) -> Value {
        let number = if is_numeric { number(bytes) } else { f64::NAN };
        Value { text: view.text_constant(bytes), constant: view.number_constant(number), number }
    }
}

/// Longer values are looked up each time.
const SHORT: usize = 16;

/// A table with one place for each hash: what comes later takes it over.
pub(crate) struct Known {
    slots: Vec<(Packed, Value)>,
}

/// The bytes of a short value, in a form that compares at once.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    low: u64,
    high: u64,
    len: u64,
}

impl Packed {
    /// The first and the last bytes; in values of a middling length they overlap.
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
            len @ 8..=SHORT => (word(0), word(len - 8)),
            _ => return None,
        };
        Some(Packed { low, high, len: bytes.len() as u64 })
    }

    #[inline]
    fn slot(self) -> usize {
        (mix(self.high, self.low ^ self.len << 57) >> (64 - VALUE_CACHE_SLOTS.trailing_zeros())) as usize
    }
}

impl Default for Known {
    fn default() -> Known {
        let nobody = Packed { low: 0, high: 0, len: u64::MAX };
        Known {
            slots: vec![(nobody, Value { text: NONE, constant: NONE, number: f64::NAN }); VALUE_CACHE_SLOTS],
        }
    }
}

impl Known {
    /// What a short value or a rank is.
    pub(crate) fn short(&mut self, view: View<'_>, value: Short) -> Value {
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

    /// What a value is. Whether it is a number is left open if nobody asks.
    #[inline]
    pub(crate) fn value(&mut self, view: View<'_>, bytes: &[u8], is_numeric: bool) -> Value {
        let Some(packed) = Packed::of(bytes) else {
            return Value::of(view, bytes, is_numeric);
        };
        let (known, value) = &mut self.slots[packed.slot()];
        if *known != packed {
            (*known, *value) = (packed, Value::of(view, bytes, true));
        }
        *value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_tells_short_values_apart() {
        let mut seen = std::collections::HashMap::new();
        for len in 0..=SHORT {
            for at in 0..len {
                for byte in [b'a', b'b'] {
                    let mut bytes = vec![b'x'; len];
                    bytes[at] = byte;
                    let Packed { low, high, len } = Packed::of(&bytes).expect("short");
                    assert!(seen.insert((low, high, len), bytes.clone()).is_none_or(|other| other == bytes));
                }
            }
        }
        assert!(Packed::of(&[b'x'; SHORT + 1]).is_none());
    }
}
