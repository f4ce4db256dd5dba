//! Joins with local data as names: a join is written as the name of an element beside the message, and read from it.
//!
//! So a segment holds its joins among its labels, and equal joins of all its queries are one.

use super::ast::{Name, NameTest, Node};

/// A join of values in the message with values in records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    pub data: String,
    /// The path of the values in records.
    pub key: Vec<JoinStep>,
    /// The path of the values in the message.
    pub message: Vec<JoinStep>,
}

/// A step of a path without predicates, from a document node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinStep {
    pub descends: bool,
    pub node: Node,
}

const FIRST: char = '$';
const PART: char = '\u{2}';
const STEP: char = '\u{3}';
const URI: char = '\u{1}';

impl Join {
    /// The name of its element beside the message, which says all of it.
    pub fn name(&self) -> String {
        format!("{FIRST}{}{PART}{}{PART}{}", self.data, written(&self.key), written(&self.message))
    }

    /// The join that a local name stands for.
    pub fn of_name(local: &str) -> Option<Join> {
        let mut parts = local.strip_prefix(FIRST)?.split(PART);
        let (data, key, message) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Join { data: data.to_string(), key: read(key)?, message: read(message)? })
    }
}

fn written(steps: &[JoinStep]) -> String {
    let step = |JoinStep { descends, node }: &JoinStep| {
        let (kind, test) = match node {
            Node::Element(test) => ('e', Some(test)),
            Node::Attribute(test) => ('a', Some(test)),
            Node::Text => ('t', None),
        };
        let test = match test {
            None => String::new(),
            Some(NameTest::Any) => "*".to_string(),
            Some(NameTest::AnyIn(uri)) => format!("u{uri}"),
            Some(NameTest::Local(local)) => format!("l{local}"),
            Some(NameTest::Name(Name { uri, local })) => format!("n{uri}{URI}{local}"),
        };
        format!("{}{kind}{test}", if *descends { "//" } else { "/" })
    };
    steps.iter().map(step).collect::<Vec<_>>().join(&STEP.to_string())
}

fn read(steps: &str) -> Option<Vec<JoinStep>> {
    let step = |step: &str| {
        let step = step.strip_prefix('/')?;
        let (descends, step) = step.strip_prefix('/').map_or((false, step), |step| (true, step));
        let (kind, test) = step.split_at_checked(1)?;
        let name = || match test.split_at_checked(1)? {
            ("*", _) => Some(NameTest::Any),
            ("u", uri) => Some(NameTest::AnyIn(uri.to_string())),
            ("l", local) => Some(NameTest::Local(local.to_string())),
            (_, name) => {
                let (uri, local) = name.split_once(URI)?;
                Some(NameTest::Name(Name { uri: uri.to_string(), local: local.to_string() }))
            }
        };
        let node = match kind {
            "e" => Node::Element(name()?),
            "a" => Node::Attribute(name()?),
            _ => Node::Text,
        };
        Some(JoinStep { descends, node })
    };
    steps.split(STEP).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_all_of_a_join() {
        let name = |test| Node::Element(NameTest::Name(Name { uri: "urn:x".to_string(), local: test }));
        let step = |descends, node| JoinStep { descends, node };
        let join = Join {
            data: "my.data".to_string(),
            key: vec![step(true, name("row".to_string())), step(false, Node::Text)],
            message: vec![
                step(false, Node::Element(NameTest::Any)),
                step(true, Node::Element(NameTest::AnyIn("urn:y".to_string()))),
                step(true, Node::Attribute(NameTest::Local("é".to_string()))),
            ],
        };
        assert_eq!(Join::of_name(&join.name()), Some(join));
        assert_eq!(Join::of_name("$envelope"), None);
    }
}
