//! A cache of names as written, `prefix:local`. A name is checked, split and resolved once per epoch; after
//! that it costs one lookup by its bytes.
//!
//! ```text
//! p:item   prefix `p`, local part `item`, resolved last with p = urn:x to NameId 7
//! xmlns:p  declares the prefix `p`
//! ```
//!
//! The entry also remembers the namespace it was resolved in last, because a prefix is nearly always
//! bound to the same namespace, and the last start tag that had it as an attribute, which finds
//! duplicate attributes without a set.

use super::scan::{PADDING, word};
use crate::document::id_table::{IdTable, Seed};
use crate::document::{Capacity, Vocabulary};
use crate::ids::{NameId, UriId};
use crate::util::xml_chars::{is_name_char, is_name_start};

/// A prefix in `WrittenNames`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PrefixId(pub u32);

impl PrefixId {
    /// No prefix.
    pub const NONE: PrefixId = PrefixId(0);
    pub const XML: PrefixId = PrefixId(1);
    pub const XMLNS: PrefixId = PrefixId(2);
}

/// A name as written, in `WrittenNames`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct WrittenNameId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WrittenKind {
    Plain,
    Prefixed,
    /// As an attribute it declares a namespace for this prefix.
    Declares(PrefixId),
}

/// A name as written, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenName {
    /// Its first sixteen bytes, with zeros after the end.
    head: [u64; 2],
    /// All its bytes: a range of `WrittenNames::bytes`.
    start: u32,
    len: u32,
    local: u32,
    pub prefix: PrefixId,
    pub kind: WrittenKind,
    /// The name in no namespace: that of a `Plain` attribute.
    pub plain: NameId,
    /// The namespace it was resolved in last, and the resulting name.
    uri: UriId,
    name: NameId,
    /// The last start tag that had it as an attribute.
    tag: u64,
}

/// All written names of an epoch of the vocabulary.
pub(super) struct WrittenNames {
    seed: Seed,
    /// The bytes of all names, concatenated.
    bytes: Vec<u8>,
    entries: Vec<WrittenName>,
    hashes: Vec<u64>,
    ids: IdTable,
    prefixes: Vec<Box<[u8]>>,
    prefix_ids: IdTable,
    /// By `NameId`: the last start tag that had an attribute with a prefix and this name.
    tags: Vec<u64>,
}

impl WrittenNames {
    pub fn new() -> WrittenNames {
        let mut names = WrittenNames {
            seed: Seed::new(),
            bytes: Vec::new(),
            entries: Vec::new(),
            hashes: Vec::new(),
            ids: IdTable::new(),
            prefixes: Vec::new(),
            prefix_ids: IdTable::new(),
            tags: Vec::new(),
        };
        for prefix in [&b""[..], b"xml", b"xmlns"] {
            names.prefix(prefix);
        }
        names
    }

    /// Whether it is past the capacity and must be cleared before the next message. It has a check of its
    /// own because one name of a vocabulary can be written with any number of prefixes.
    pub fn is_full(&self, capacity: Capacity) -> bool {
        self.entries.len().max(self.prefixes.len()) > capacity.names || self.bytes.len() > capacity.bytes
    }

    #[inline(always)]
    pub fn entry(&self, id: WrittenNameId) -> &WrittenName {
        &self.entries[id.0 as usize]
    }

    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    pub fn prefix_text(&self, id: PrefixId) -> &[u8] {
        &self.prefixes[id.0 as usize]
    }

    /// The name of `len` bytes at `at` of a padded text, if it is in the cache.
    #[inline(always)]
    pub fn find(&self, text: &[u8], at: usize, len: usize) -> Option<WrittenNameId> {
        let head = first_sixteen(text, at, len);
        self.ids
            .find(self.hash(head, text, at, len), |id| self.is(id, head, text, at, len))
            .map(WrittenNameId)
    }

    /// Finds a name, or checks it and adds it to the cache. The error is the reason why it is not a name.
    #[cold]
    pub fn add(
        &mut self,
        text: &[u8],
        at: usize,
        len: usize,
        vocabulary: &mut Vocabulary,
    ) -> Result<WrittenNameId, &'static str> {
        if let Some(id) = self.find(text, at, len) {
            return Ok(id);
        }
        let bytes = &text[at..at + len];
        let colon = check_qualified(bytes)?;
        let local = colon.map_or(0, |colon| colon + 1);
        let prefix = self.prefix(&bytes[..colon.unwrap_or(0)]);
        let kind = match colon {
            Some(_) if prefix == PrefixId::XMLNS => WrittenKind::Declares(self.prefix(&bytes[local..])),
            Some(_) => WrittenKind::Prefixed,
            None if bytes == b"xmlns" => WrittenKind::Declares(PrefixId::NONE),
            None => WrittenKind::Plain,
        };
        let plain = match kind {
            WrittenKind::Plain => vocabulary.name(UriId(0), bytes),
            _ => NameId::NONE,
        };
        let id = self.entries.len() as u32;
        let head = first_sixteen(text, at, len);
        let hash = self.hash(head, text, at, len);
        self.entries.push(WrittenName {
            head,
            start: self.bytes.len() as u32,
            len: len as u32,
            local: local as u32,
            prefix,
            kind,
            plain,
            uri: UriId(0),
            name: plain,
            tag: 0,
        });
        self.bytes.extend_from_slice(bytes);
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.ids.insert(hash, id, |id| hashes[id as usize]);
        Ok(WrittenNameId(id))
    }

    /// `add` for a name that is not part of a padded text.
    pub fn add_bytes(
        &mut self,
        bytes: &[u8],
        vocabulary: &mut Vocabulary,
    ) -> Result<WrittenNameId, &'static str> {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len() + PADDING, 0);
        self.add(&padded, 0, bytes.len(), vocabulary)
    }

    /// The expanded name of a written name whose prefix is bound to `uri`.
    #[inline(always)]
    pub fn resolve(&mut self, id: WrittenNameId, uri: UriId, vocabulary: &mut Vocabulary) -> NameId {
        let entry = &self.entries[id.0 as usize];
        if entry.uri == uri && entry.name.is_some() {
            return entry.name;
        }
        self.resolve_uncached(id, uri, vocabulary)
    }

    #[inline(never)]
    fn resolve_uncached(&mut self, id: WrittenNameId, uri: UriId, vocabulary: &mut Vocabulary) -> NameId {
        let name = vocabulary.name(uri, &self.bytes(id)[self.entry(id).local as usize..]);
        let entry = &mut self.entries[id.0 as usize];
        (entry.uri, entry.name) = (uri, name);
        name
    }

    /// Records that start tag `tag` has this attribute; false if it has it already.
    #[inline(always)]
    pub fn mark_written(&mut self, id: WrittenNameId, tag: u64) -> bool {
        let noted = &mut self.entries[id.0 as usize].tag;
        std::mem::replace(noted, tag) != tag
    }

    /// The same by the expanded name, for attributes with a prefix.
    pub fn mark_resolved(&mut self, name: NameId, tag: u64) -> bool {
        if self.tags.len() <= name.index() {
            self.tags.resize(name.index() + 1, 0);
        }
        std::mem::replace(&mut self.tags[name.index()], tag) != tag
    }

    pub fn was_written(&self, id: WrittenNameId, tag: u64) -> bool {
        self.entries[id.0 as usize].tag == tag
    }

    pub fn bytes(&self, id: WrittenNameId) -> &[u8] {
        let entry = self.entry(id);
        &self.bytes[entry.start as usize..][..entry.len as usize]
    }

    pub fn prefix(&mut self, prefix: &[u8]) -> PrefixId {
        let seed = self.seed;
        let hash = seed.bytes(0, prefix);
        if let Some(id) = self.prefix_ids.find(hash, |id| *self.prefixes[id as usize] == *prefix) {
            return PrefixId(id);
        }
        let id = self.prefixes.len() as u32;
        self.prefixes.push(prefix.into());
        let prefixes = &self.prefixes;
        self.prefix_ids.insert(hash, id, |id| seed.bytes(0, &prefixes[id as usize]));
        PrefixId(id)
    }

    #[inline(always)]
    fn hash(&self, head: [u64; 2], text: &[u8], at: usize, len: usize) -> u64 {
        let mut state = self.seed.mix(0, head);
        let mut done = 16;
        while done < len {
            state = self.seed.mix(state, first_sixteen(text, at + done, len - done));
            done += 16;
        }
        state
    }

    #[inline(always)]
    fn is(&self, id: u32, head: [u64; 2], text: &[u8], at: usize, len: usize) -> bool {
        let entry = &self.entries[id as usize];
        // No name contains a zero byte, so equal zero-padded heads imply equal lengths up to 16.
        entry.head == head && (len <= 16 || *self.bytes(WrittenNameId(id)) == text[at..at + len])
    }
}

/// The first sixteen of the `len` bytes at `at`, padded with zeros.
#[inline(always)]
fn first_sixteen(text: &[u8], at: usize, len: usize) -> [u64; 2] {
    static MASK: [u8; 32] = {
        let mut mask = [0; 32];
        let mut at = 0;
        while at < 16 {
            mask[at] = 0xFF;
            at += 1;
        }
        mask
    };
    let from = 16 - len.min(16);
    [word(text, at) & word(&MASK, from), word(text, at + 8) & word(&MASK, from + 8)]
}

/// Whether these bytes are a `Name`.
pub(super) fn is_name(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    text.starts_with(is_name_start) && text.chars().all(is_name_char)
}

/// The offset of the colon of a `QName`, or why it is not a `QName`.
fn check_qualified(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    if !is_name(bytes) {
        return Err("this character is not allowed here in a name");
    }
    let Some(colon) = memchr::memchr(b':', bytes) else {
        return Ok(None);
    };
    let local = &bytes[colon + 1..];
    if colon == 0 || local.is_empty() || local.contains(&b':') || !is_name(local) {
        return Err("a name has at most one colon, with a name before it and a name after it");
    }
    Ok(Some(colon))
}
