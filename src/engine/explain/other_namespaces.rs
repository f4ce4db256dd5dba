//! Names of a query that a message has in other namespaces: `//Invoice` and `<Invoice xmlns="urn:i"/>`.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Document, Vocabulary};
use crate::query::ast::{Name, NameTest, Query};
use crate::query::rename::rename;

/// A name that a query asks for, and the namespaces in which the message has it.
pub struct Elsewhere {
    pub asked: Name,
    pub uris: Vec<String>,
}

/// The names of the query that the message does not have, but has in other namespaces.
pub fn elsewhere(query: &Query, document: &Document, vocabulary: &Vocabulary) -> Vec<Elsewhere> {
    let mut uris: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    let names = document.elements.iter().map(|element| element.name);
    for name in names.chain(document.attributes.iter().map(|attribute| attribute.name)) {
        let (uri, local) = vocabulary.name_parts(name);
        uris.entry(local).or_default().insert(vocabulary.uri_text(uri));
    }
    let mut found: Vec<Elsewhere> = Vec::new();
    query.for_each_name_test(&mut |test| {
        let NameTest::Name(asked) = test else { return };
        if let Some(present) = uris.get(asked.local.as_bytes())
            && !present.contains(asked.uri.as_bytes())
            && found.iter().all(|known| known.asked != *asked)
        {
            let uris = present.iter().map(|uri| String::from_utf8_lossy(uri).into_owned()).collect();
            found.push(Elsewhere { asked: asked.clone(), uris });
        }
    });
    found
}

/// The query with these names as the message has them: in the one namespace that has the name, else in any.
pub fn with_names_of_message(query: &Query, names: &[Elsewhere]) -> Query {
    rename(query, &|test| {
        let NameTest::Name(asked) = test else { return test.clone() };
        let local = asked.local.clone();
        match names.iter().find(|name| name.asked == *asked).map(|name| name.uris.as_slice()) {
            None => test.clone(),
            Some([uri]) => NameTest::Name(Name { uri: uri.clone(), local }),
            Some(_) => NameTest::Local(local),
        }
    })
}

/// The explanation that only namespaces keep the query from matching, with the query to write.
pub fn reason(names: &[Elsewhere], instead: &str) -> String {
    let name = |name: &Elsewhere| {
        let uris: Vec<String> = name.uris.iter().map(|uri| described(uri)).collect();
        format!("`{}` is {} in this message", name.asked.local, uris.join(" and "))
    };
    let found: Vec<String> = names.iter().map(name).collect();
    let any: Vec<String> = names.iter().map(|name| format!("`*:{}`", name.asked.local)).collect();
    format!(
        "only the namespace differs: {}; write `{instead}`, or {}, or bind a prefix or the default namespace to it",
        found.join(", "),
        any.join(" and "),
    )
}

fn described(uri: &str) -> String {
    match uri {
        "" => "in no namespace".to_string(),
        uri => format!("in the namespace `{uri}`"),
    }
}
