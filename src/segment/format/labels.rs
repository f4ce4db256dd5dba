//! Labels: the name tests of queries as numbers. Label 0 is `*`.
//!
//! A label's text is its kind, the namespace URI, NUL, and the local part: `n` `urn:x` NUL `a` for `x:a`,
//! `u` `urn:x` NUL for `x:*`, `l` NUL `a` for `*:a`.

use rustc_hash::FxHashMap;

use super::columns::{Columns, View};
use crate::ids::LabelId;
use crate::query::ast::NameTest;

/// The first byte of a label's text: the label tests for one name, for all names of a namespace, or for a local
/// name in any namespace.
pub const LABEL_NAME: u8 = b'n';
pub const LABEL_NAMESPACE: u8 = b'u';
pub const LABEL_LOCAL: u8 = b'l';

/// Labels while a segment is built.
pub struct Labels {
    ids: FxHashMap<Vec<u8>, LabelId>,
    key: Vec<u8>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels { ids: FxHashMap::default(), key: Vec::new(), bytes: Vec::new(), ends: vec![0] }
    }
}

impl Labels {
    /// The label of a name test, which is new if no test before was the same.
    pub fn label(&mut self, test: &NameTest) -> LabelId {
        self.key.clear();
        if !push_test_key(test, &mut self.key) {
            return LabelId::ANY;
        }
        if let Some(&label) = self.ids.get(&self.key) {
            return label;
        }
        let label = LabelId::from(self.ends.len());
        self.bytes.extend(&self.key);
        self.ends.push(self.bytes.len() as u32);
        self.ids.insert(self.key.clone(), label);
        label
    }

    /// How many bytes the texts of all labels have.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn write(self, columns: &mut Columns) {
        columns.label_bytes = self.bytes;
        columns.label_ends = self.ends;
    }
}

/// Labels of a segment by their text.
pub struct LabelTable(FxHashMap<Box<[u8]>, LabelId>);

impl LabelTable {
    pub fn read(view: View<'_>) -> LabelTable {
        let mut ids = FxHashMap::default();
        let mut start = 0;
        for (label, &end) in view.label_ends.iter().enumerate().skip(1) {
            ids.insert(view.label_bytes[start..end as usize].into(), LabelId::from(label));
            start = end as usize;
        }
        LabelTable(ids)
    }

    /// The label with a text; `NONE` if the segment has none.
    pub fn get(&self, key: &[u8]) -> LabelId {
        self.0.get(key).copied().unwrap_or(LabelId::NONE)
    }

    /// The label of a name test; `NONE` if the segment has none.
    pub fn of_test(&self, test: &NameTest) -> LabelId {
        let mut key = Vec::new();
        if push_test_key(test, &mut key) { self.get(&key) } else { LabelId::ANY }
    }
}

/// Whether a segment has a label for a name test other than `*`.
pub fn has_label(view: View<'_>, test: &NameTest) -> bool {
    let mut key = Vec::new();
    push_test_key(test, &mut key);
    let mut start = 0;
    view.label_ends.iter().skip(1).any(|&end| {
        let label = &view.label_bytes[start..end as usize];
        start = end as usize;
        label == key
    })
}

/// The local names of labels for one name without namespace that begin with `$`: roots beside the message.
pub fn special_names(view: View<'_>) -> impl Iterator<Item = (LabelId, &str)> {
    let mut start = 0;
    view.label_ends.iter().enumerate().skip(1).filter_map(move |(label, &end)| {
        let text = &view.label_bytes[start..end as usize];
        start = end as usize;
        let name = text.strip_prefix(&[LABEL_NAME, 0])?;
        (name.first() == Some(&b'$')).then(|| Some((LabelId::from(label), str::from_utf8(name).ok()?)))?
    })
}

/// Appends the text of a name test's label; false for `*`, which has none.
fn push_test_key(test: &NameTest, key: &mut Vec<u8>) -> bool {
    match test {
        NameTest::Any => return false,
        NameTest::AnyIn(uri) => push_key(LABEL_NAMESPACE, uri.as_bytes(), b"", key),
        NameTest::Name(name) => push_key(LABEL_NAME, name.uri.as_bytes(), name.local.as_bytes(), key),
        NameTest::Local(local) => push_key(LABEL_LOCAL, b"", local.as_bytes(), key),
    }
    true
}

/// Appends the text of a label.
pub fn push_key(kind: u8, uri: &[u8], local: &[u8], key: &mut Vec<u8>) {
    key.push(kind);
    key.extend(uri);
    key.push(0);
    key.extend(local);
}
