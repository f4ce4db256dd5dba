//! Names and tag paths as numbers, kept from message to message.

use rustc_hash::FxHashMap;

use crate::ids::{NameId, TagPathId, UriId};

/// Interns namespace URIs, expanded names and tag paths.
///
/// It outlives messages so that what is computed per name or tag path can be remembered by id.
/// It is bounded: when a message finds it past its capacity it starts anew under another `epoch`,
/// and whatever was remembered by id belongs to the epoch it was remembered in.
pub struct Vocabulary {
    epoch: u64,
    uris: Vec<Box<[u8]>>,
    uri_ids: FxHashMap<Box<[u8]>, UriId>,
    names: Vec<(UriId, Box<[u8]>)>,
    name_ids: FxHashMap<(UriId, Box<[u8]>), NameId>,
    paths: Vec<(TagPathId, NameId)>,
    path_ids: FxHashMap<(TagPathId, NameId), TagPathId>,
}

impl Vocabulary {
    pub fn new() -> Vocabulary {
        let mut vocabulary = Vocabulary {
            epoch: 0,
            uris: Vec::new(),
            uri_ids: FxHashMap::default(),
            names: Vec::new(),
            name_ids: FxHashMap::default(),
            paths: Vec::new(),
            path_ids: FxHashMap::default(),
        };
        vocabulary.uri(b"");
        vocabulary
    }

    /// Changes whenever ids are given out anew.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn uri(&mut self, uri: &[u8]) -> UriId {
        if let Some(&id) = self.uri_ids.get(uri) {
            return id;
        }
        let id = UriId::from(self.uris.len());
        self.uris.push(uri.into());
        self.uri_ids.insert(uri.into(), id);
        id
    }

    pub fn name(&mut self, uri: UriId, local: &[u8]) -> NameId {
        let key = (uri, Box::from(local));
        if let Some(&id) = self.name_ids.get(&key) {
            return id;
        }
        let id = NameId::from(self.names.len());
        self.names.push(key.clone());
        self.name_ids.insert(key, id);
        id
    }

    /// The tag path of an element called `name` below `parent` (`TagPathId::NONE`: the root).
    pub fn tag_path(&mut self, parent: TagPathId, name: NameId) -> TagPathId {
        if let Some(&id) = self.path_ids.get(&(parent, name)) {
            return id;
        }
        let id = TagPathId::from(self.paths.len());
        self.paths.push((parent, name));
        self.path_ids.insert((parent, name), id);
        id
    }

    pub fn uri_text(&self, id: UriId) -> &[u8] {
        &self.uris[id.index()]
    }

    pub fn name_parts(&self, id: NameId) -> (UriId, &[u8]) {
        let (uri, local) = &self.names[id.index()];
        (*uri, local)
    }

    pub fn tag_path_parts(&self, id: TagPathId) -> (TagPathId, NameId) {
        self.paths[id.index()]
    }

    pub fn names(&self) -> usize {
        self.names.len()
    }

    pub fn tag_paths(&self) -> usize {
        self.paths.len()
    }
}

impl Default for Vocabulary {
    fn default() -> Vocabulary {
        Vocabulary::new()
    }
}
