//! Interns namespace URIs, expanded names and tag paths: each distinct one has an id that stays the same
//! from message to message. A *tag path* is the list of names from the root element down to an element.
//!
//! ```text
//! <a><b/><b/></a>   names      a = 0, b = 1
//!                   tag paths  /a = 0 (no parent, name 0), /a/b = 1 (parent 0, name 1)
//! ```
//!
//! Both `b` have tag path 1. So everything that depends only on the tag path, such as the state of an
//! automaton, is computed once per tag path and not once per element.

use super::id_table::{IdTable, Seed};
use crate::ids::{NameId, TagPathId, UriId};

/// The capacity of a vocabulary. Past it, the next message starts a new epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// The limit on names, and also on namespace URIs.
    pub names: usize,
    pub tag_paths: usize,
    /// Bytes of all names and namespace URIs together.
    pub bytes: usize,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { names: 1 << 16, tag_paths: 1 << 18, bytes: 8 << 20 }
    }
}

/// The current size of a vocabulary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VocabularyStats {
    pub epoch: u64,
    pub uris: usize,
    pub names: usize,
    pub tag_paths: usize,
    pub memory: usize,
}

/// Interns namespace URIs, expanded names and tag paths.
///
/// It outlives messages, so that caches can use names and tag paths as keys. It is bounded: if it is past
/// its capacity when a message begins, it is emptied and its `epoch` grows. A cache that is keyed by its
/// ids is valid for one epoch only.
#[derive(Clone)]
pub struct Vocabulary {
    epoch: u64,
    capacity: Capacity,
    seed: Seed,
    /// The bytes of all URIs and names, concatenated.
    bytes: Vec<u8>,
    uris: Vec<ByteRange>,
    uri_ids: IdTable,
    names: Vec<(UriId, ByteRange)>,
    name_ids: IdTable,
    paths: Vec<(TagPathId, NameId)>,
    path_ids: IdTable,
}

/// A range of `Vocabulary::bytes`.
#[derive(Clone, Copy)]
struct ByteRange {
    start: u32,
    len: u32,
}

impl ByteRange {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..self.len as usize]
    }
}

impl Vocabulary {
    pub fn new() -> Vocabulary {
        Vocabulary::with_capacity(Capacity::default())
    }

    pub fn with_capacity(capacity: Capacity) -> Vocabulary {
        let mut vocabulary = Vocabulary {
            epoch: 0,
            capacity,
            seed: Seed::new(),
            bytes: Vec::new(),
            uris: Vec::new(),
            uri_ids: IdTable::new(),
            names: Vec::new(),
            name_ids: IdTable::new(),
            paths: Vec::new(),
            path_ids: IdTable::new(),
        };
        vocabulary.uri(b"");
        vocabulary
    }

    /// Changes whenever ids are reassigned.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Starts a new epoch if past capacity. Call it between messages only: the ids of a message must stay
    /// valid while it is read.
    pub fn reset_if_full(&mut self) {
        let Capacity { names, tag_paths, bytes } = self.capacity;
        let most = self.names.len().max(self.uris.len());
        if most > names || self.paths.len() > tag_paths || self.bytes.len() > bytes {
            let epoch = self.epoch + 1;
            *self = Vocabulary { epoch, ..Vocabulary::with_capacity(self.capacity) };
        }
    }

    pub fn uri(&mut self, uri: &[u8]) -> UriId {
        let seed = self.seed;
        let hash = seed.bytes(0, uri);
        if let Some(id) = self.uri_ids.find(hash, |id| self.uris[id as usize].of(&self.bytes) == uri) {
            return UriId(id);
        }
        let id = UriId::from(self.uris.len());
        let range = self.append(uri);
        self.uris.push(range);
        let (uris, bytes) = (&self.uris, &self.bytes);
        self.uri_ids.insert(hash, id.0, |id| seed.bytes(0, uris[id as usize].of(bytes)));
        id
    }

    pub fn name(&mut self, uri: UriId, local: &[u8]) -> NameId {
        let seed = self.seed;
        let hash = seed.bytes(uri.0, local);
        if let Some(id) = self.lookup_name(hash, uri, local) {
            return id;
        }
        let id = NameId::from(self.names.len());
        let range = self.append(local);
        self.names.push((uri, range));
        let (names, bytes) = (&self.names, &self.bytes);
        self.name_ids.insert(hash, id.0, |id| {
            let (uri, local) = names[id as usize];
            seed.bytes(uri.0, local.of(bytes))
        });
        id
    }

    /// The id of a name, if a message of this epoch has used it.
    pub fn find_name(&self, uri: &[u8], local: &[u8]) -> Option<NameId> {
        let is_match = |id: u32| self.uris[id as usize].of(&self.bytes) == uri;
        let uri = UriId(self.uri_ids.find(self.seed.bytes(0, uri), is_match)?);
        self.lookup_name(self.seed.bytes(uri.0, local), uri, local)
    }

    /// The tag path of an element called `name` below `parent` (`TagPathId::NONE`: the root).
    #[inline]
    pub fn tag_path(&mut self, parent: TagPathId, name: NameId) -> TagPathId {
        let seed = self.seed;
        let hash = seed.pair(parent.0, name.0);
        if let Some(id) = self.path_ids.find(hash, |id| self.paths[id as usize] == (parent, name)) {
            return TagPathId(id);
        }
        let id = TagPathId::from(self.paths.len());
        self.paths.push((parent, name));
        let paths = &self.paths;
        self.path_ids.insert(hash, id.0, |id| {
            let (parent, name) = paths[id as usize];
            seed.pair(parent.0, name.0)
        });
        id
    }

    pub fn uri_text(&self, id: UriId) -> &[u8] {
        self.uris[id.index()].of(&self.bytes)
    }

    pub fn name_parts(&self, id: NameId) -> (UriId, &[u8]) {
        let (uri, local) = self.names[id.index()];
        (uri, local.of(&self.bytes))
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

    pub fn stats(&self) -> VocabularyStats {
        let tables = self.uri_ids.memory() + self.name_ids.memory() + self.path_ids.memory();
        let arrays = self.uris.capacity() * size_of::<ByteRange>()
            + self.names.capacity() * size_of::<(UriId, ByteRange)>()
            + self.paths.capacity() * size_of::<(TagPathId, NameId)>();
        VocabularyStats {
            epoch: self.epoch,
            uris: self.uris.len(),
            names: self.names.len(),
            tag_paths: self.paths.len(),
            memory: self.bytes.capacity() + arrays + tables,
        }
    }

    fn lookup_name(&self, hash: u64, uri: UriId, local: &[u8]) -> Option<NameId> {
        let is_match = |id: u32| {
            let (its_uri, its_local) = self.names[id as usize];
            its_uri == uri && its_local.of(&self.bytes) == local
        };
        self.name_ids.find(hash, is_match).map(NameId)
    }

    fn append(&mut self, bytes: &[u8]) -> ByteRange {
        let range = ByteRange { start: self.bytes.len() as u32, len: bytes.len() as u32 };
        self.bytes.extend_from_slice(bytes);
        range
    }
}

impl Default for Vocabulary {
    fn default() -> Vocabulary {
        Vocabulary::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_the_same_id() {
        let mut vocabulary = Vocabulary::new();
        let ids: Vec<NameId> =
            (0..1000).map(|n| vocabulary.name(UriId(n % 3), format!("name{}", n / 3).as_bytes())).collect();
        for n in 0..1000 {
            let local = format!("name{}", n / 3);
            assert_eq!(vocabulary.name(UriId(n % 3), local.as_bytes()), ids[n as usize]);
            assert_eq!(vocabulary.name_parts(ids[n as usize]), (UriId(n % 3), local.as_bytes()));
        }
        assert_eq!(vocabulary.names(), 1000);
        assert_eq!(vocabulary.uri(b""), UriId(0));
        let uri = vocabulary.uri(b"urn:x");
        assert_eq!(vocabulary.find_name(b"urn:x", b"absent"), None);
        let name = vocabulary.name(uri, b"present");
        assert_eq!(vocabulary.find_name(b"urn:x", b"present"), Some(name));
        let path = vocabulary.tag_path(TagPathId::NONE, name);
        let below = vocabulary.tag_path(path, name);
        assert_ne!(path, below);
        assert_eq!(vocabulary.tag_path(path, name), below);
        assert_eq!(vocabulary.tag_path_parts(below), (path, name));
    }

    #[test]
    fn past_capacity_a_new_epoch_begins() {
        let mut vocabulary = Vocabulary::with_capacity(Capacity { names: 2, ..Capacity::default() });
        vocabulary.name(UriId(0), b"a");
        vocabulary.name(UriId(0), b"b");
        vocabulary.reset_if_full();
        assert_eq!((vocabulary.epoch(), vocabulary.names()), (0, 2));
        vocabulary.name(UriId(0), b"c");
        vocabulary.reset_if_full();
        assert_eq!((vocabulary.epoch(), vocabulary.names()), (1, 0));
        assert_eq!(vocabulary.stats().uris, 1);
    }
}
