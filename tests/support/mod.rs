//! Code that the kernel's tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod cases;
pub mod mutation;
pub mod random;

use tamis::document::{Document, Reader};
use tamis::limits::Limits;
use tamis::query::Namespaces;

pub fn namespaces<'a>(bindings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Namespaces {
    let mut namespaces = Namespaces::new();
    for (prefix, uri) in bindings {
        namespaces.bind(prefix, uri).expect(prefix);
    }
    namespaces
}

/// A message, read, and the reader that knows its names.
pub fn message(xml: &[u8]) -> (Document, Reader) {
    let mut reader = Reader::new();
    let mut document = Document::default();
    let read = reader.read(xml, &Limits::default(), &mut document);
    read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(xml)));
    (document, reader)
}
