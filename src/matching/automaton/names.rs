//! The labels of a segment for the names of messages and of local data: a table by name id, filled as the
//! vocabulary grows.

use std::sync::Arc;

use crate::data::DataSets;
use crate::document::Vocabulary;
use crate::ids::{LabelId, NameId};
use crate::query::ast::NameTest;
use crate::segment::format::columns::View;
use crate::segment::format::labels::{LABEL_LOCAL, LABEL_NAME, LABEL_NAMESPACE, LabelTable, push_key};
use crate::segment::format::trie::NameLabels;

pub struct Names {
    ids: LabelTable,
    labels: Vec<NameLabels>,
    /// Per label of a name, the name.
    names: Vec<NameId>,
    epoch: u64,
    key: Vec<u8>,
    data: Option<Box<DataNames>>,
}

/// The local data that queries of a segment may name.
pub struct DataNames {
    pub sets: Arc<DataSets>,
    /// By data set.
    pub names: Vec<Names>,
}

impl Names {
    pub fn new(view: View<'_>) -> Names {
        let names = vec![NameId::NONE; view.label_ends.len()];
        Names {
            ids: LabelTable::read(view),
            labels: Vec::new(),
            names,
            epoch: 0,
            key: Vec::new(),
            data: None,
        }
    }

    /// Replaces the local data.
    pub fn attach(&mut self, view: View<'_>, sets: &Arc<DataSets>) {
        let is_attached = self.data.as_ref().is_some_and(|data| Arc::ptr_eq(&data.sets, sets));
        if is_attached || (sets.is_empty() && self.data.is_none()) {
            return;
        }
        let names = (0..sets.len()).map(|set| {
            let mut names = Names::new(view);
            names.update(sets.at(set).vocabulary());
            names
        });
        self.data = Some(Box::new(DataNames { sets: sets.clone(), names: names.collect() }));
    }

    /// The local data, if there is any.
    pub fn data(&self) -> Option<&DataNames> {
        self.data.as_deref()
    }

    /// Adds the vocabulary's new names. Returns whether it has a new epoch, so that ids changed their meaning.
    pub fn update(&mut self, vocabulary: &Vocabulary) -> bool {
        let is_new_epoch = self.epoch != vocabulary.epoch();
        if is_new_epoch {
            self.labels.clear();
            self.names.fill(NameId::NONE);
            self.epoch = vocabulary.epoch();
        }
        for id in self.labels.len()..vocabulary.names() {
            let id = NameId::from(id);
            let (uri, local) = vocabulary.name_parts(id);
            let uri = vocabulary.uri_text(uri);
            let name = self.label(LABEL_NAME, uri, local);
            if name.is_some() {
                self.names[name.index()] = id;
            }
            // The roots of the envelope and of local data pass no wildcard.
            let (namespace, by_local) = match local.starts_with(b"$") {
                true => (LabelId::NONE, LabelId::NONE),
                false => (self.label(LABEL_NAMESPACE, uri, b""), self.label(LABEL_LOCAL, b"", local)),
            };
            let transition_key = match (name.is_some(), namespace.is_some(), by_local.is_some()) {
                (true, ..) => name.0,
                // Valid for this epoch of the vocabulary, as transitions are.
                (false, true, true) => self.names.len() as u32 + id.0,
                // A name has one namespace and one local part.
                (false, true, false) => namespace.0,
                (false, false, _) => by_local.0,
            };
            self.labels.push(NameLabels { name, namespace, local: by_local, transition_key });
        }
        is_new_epoch
    }

    #[inline(always)]
    pub fn of(&self, name: NameId) -> NameLabels {
        self.labels[name.index()]
    }

    /// The name a label stands for; `NONE` if no message had it yet.
    #[inline(always)]
    pub fn name_of(&self, label: LabelId) -> NameId {
        self.names.get(label.index()).copied().unwrap_or(NameId::NONE)
    }

    /// The label of a name test; `NONE` if the segment has none.
    pub fn label_of(&self, test: &NameTest) -> LabelId {
        self.ids.of_test(test)
    }

    fn label(&mut self, kind: u8, uri: &[u8], local: &[u8]) -> LabelId {
        self.key.clear();
        push_key(kind, uri, local, &mut self.key);
        self.ids.get(&self.key)
    }
}
