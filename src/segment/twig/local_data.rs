//! Local data compiled for evaluation: its name, and how the records are looked up that a walk can meet.
//!
//! ```text
//! access = ANY | count<<8, access…      | EQUAL | steps<<8, value, (test | name kind<<8 | DESCENDS, label)…
//! ```

use super::values::{VALUE_DATA, text_words};
use super::{STEP_ANY, STEP_NAME, STEP_WILDCARD, Twigs};
use crate::data::{KeyStep as KeyStepOf, KeyTest};
use crate::ids::{LabelId, NameId};
use crate::query::ast::{NameTest, Operator};
use crate::query::join::{self, Access, KeyNode, KeyStep, KeyValue};
use crate::query::value::{Value, Walk};

pub const ACCESS_EQUAL: u32 = 0;
pub const ACCESS_ANY: u32 = 1;

pub const KEY_ELEMENT: u32 = 0;
pub const KEY_ATTRIBUTE: u32 = 1;
pub const KEY_TEXT: u32 = 2;
pub const KEY_DESCENDS: u32 = 1 << 16;

/// The path of a key that is compiled at `access`, with the names that its labels admit.
pub fn key_steps<N: Fn(NameId) -> bool>(
    words: &[u32],
    access: u32,
    mut admits: impl FnMut(u32, LabelId) -> N,
) -> Vec<KeyStepOf<N>> {
    let (first, count) = (access as usize + 2, words[access as usize] >> 8);
    let steps = words[first..first + 2 * count as usize].chunks_exact(2);
    let step = |step: &[u32]| KeyStepOf {
        test: match step[0] & 0xFF {
            KEY_ELEMENT => KeyTest::Element,
            KEY_ATTRIBUTE => KeyTest::Attribute,
            _ => KeyTest::Text,
        },
        descends: step[0] & KEY_DESCENDS != 0,
        admits: admits(step[0] >> 8 & 0xFF, LabelId(step[1])),
    };
    steps.map(step).collect()
}

impl Twigs {
    /// Compiles two values that are compared. If one is a walk over local data, the other finds its records.
    pub(super) fn compared(
        &mut self,
        operator: Operator,
        left: &Value,
        right: &Value,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> (u32, u32) {
        let is_equal = operator == Operator::Equal;
        match (left, right) {
            (_, Value::Walk(walk)) if is_equal && join::is_of_data(walk) => {
                (self.value(left, label), self.walk(walk, Some(left), label))
            }
            (Value::Walk(walk), _) if is_equal && join::is_of_data(walk) => {
                (self.walk(walk, Some(right), label), self.value(right, label))
            }
            _ => (self.value(left, label), self.value(right, label)),
        }
    }

    /// Compiles the start of a walk over local data.
    pub(super) fn data_of_walk(
        &mut self,
        walk: &Walk,
        compared: Option<&Value>,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> u32 {
        let mut accesses = join::accesses(walk);
        accesses.extend(compared.and_then(|value| join::access_by_nodes(walk, value)));
        self.data(&walk.start, accesses, label)
    }

    /// Compiles the documents of local data that accesses find.
    pub(super) fn data(
        &mut self,
        start: &Value,
        accesses: Vec<Access<'_>>,
        label: &mut impl FnMut(&NameTest) -> LabelId,
    ) -> u32 {
        let (name, is_collection) = join::data_of(start).unwrap_or_default();
        let accesses: Vec<u32> = accesses.iter().map(|access| self.access(access, label)).collect();
        let count = accesses.len() as u32;
        let mut words = vec![VALUE_DATA | u32::from(is_collection) << 8 | count << 16];
        words.push(self.intern(text_words(name)));
        words.extend(&accesses);
        if is_collection && !self.offsets.contains_key(words.as_slice()) {
            self.collections.push((name.to_string(), accesses));
        }
        self.intern(words)
    }

    fn access(&mut self, access: &Access<'_>, label: &mut impl FnMut(&NameTest) -> LabelId) -> u32 {
        let words = match access {
            Access::Any(any) => {
                let mut words = vec![ACCESS_ANY | (any.len() as u32) << 8];
                words.extend(any.iter().map(|access| self.access(access, label)));
                words
            }
            Access::Equal(steps, value) => {
                let value = match value {
                    KeyValue::Literal(literal) => self.value(&Value::Literal((*literal).clone()), label),
                    KeyValue::Value(value) => self.value(value, label),
                };
                let mut words = vec![ACCESS_EQUAL | (steps.len() as u32) << 8, value];
                for KeyStep { descends, node } in steps {
                    let (test, name) = match node {
                        KeyNode::Element(name) => (KEY_ELEMENT, Some(*name)),
                        KeyNode::Attribute(name) => (KEY_ATTRIBUTE, Some(*name)),
                        KeyNode::Text => (KEY_TEXT, None),
                    };
                    let kind = match name {
                        Some(NameTest::Name(_)) => STEP_NAME,
                        Some(NameTest::AnyIn(_) | NameTest::Local(_)) => STEP_WILDCARD,
                        Some(NameTest::Any) | None => STEP_ANY,
                    };
                    words.push(test | kind << 8 | if *descends { KEY_DESCENDS } else { 0 });
                    words.push(name.map_or(0, |name| label(name).0));
                }
                words
            }
        };
        self.intern(words)
    }
}
