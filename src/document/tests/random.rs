//! Random documents, written in many ways and read back, and good messages made bad.

use super::{invariants, show};
use crate::document::{Document, Reader};
use crate::limits::Limits;

/// A small generator of our own: the same documents on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A document being written, together with how it is to be shown once read.
struct Writer<'a> {
    random: &'a mut Random,
    message: String,
    expected: String,
    /// The text node being written; shown when it ends.
    run: String,
    /// Namespaces in force: prefix, URI.
    bound: Vec<(&'static str, &'static str)>,
}

const NAMES: [&str; 8] =
    ["a", "b", "item", "a-much-longer-name.for_once", "\u{E9}t\u{E9}", "x1", "\u{4E2D}\u{6587}", "B"];
const PREFIXES: [&str; 4] = ["", "p", "q", "long-prefix"];
const URIS: [&str; 3] = ["u", "urn:x:y", "http://example.org/\u{E9}"];
const CHARACTERS: [char; 14] =
    ['a', 'Z', '0', ' ', '\n', '\t', '<', '&', '>', '"', '\'', ']', '\u{E9}', '\u{1F600}'];

impl Writer<'_> {
    /// White space that may be there or not.
    fn space(&mut self) {
        self.message += self.random.pick(&["", "", "", " ", "\n", " \t\r\n"]);
    }

    fn end_run(&mut self) {
        if !self.run.is_empty() {
            self.expected += &format!("[{}]", self.run);
            self.run.clear();
        }
    }

    fn element(&mut self, depth: usize) {
        self.end_run();
        let bound = self.bound.len();
        let mut attributes: Vec<(String, String)> = Vec::new();
        if self.random.chance(25) {
            let prefix = self.random.pick(&PREFIXES);
            let uri = if prefix.is_empty() && self.random.chance(30) { "" } else { self.random.pick(&URIS) };
            self.bound.push((prefix, uri));
            attributes.push((
                if prefix.is_empty() { "xmlns".into() } else { format!("xmlns:{prefix}") },
                uri.into(),
            ));
        }
        let (written, expanded) = self.name(true);
        let mut seen = Vec::new();
        self.expected += &format!("<{expanded}");
        for _ in 0..self.random.below(4) {
            let (written, expanded) = self.name(false);
            if !seen.contains(&expanded) {
                let value: String =
                    (0..self.random.below(6)).map(|_| self.random.pick(&CHARACTERS)).collect();
                self.expected += &format!(" {expanded}=[{value}]");
                attributes.push((written, value));
                seen.push(expanded);
            }
        }
        self.expected.push('>');
        // Where a declaration stands among the attributes makes no difference.
        if attributes.len() > 1 && attributes[0].0.starts_with("xmlns") {
            let to = self.random.below(attributes.len());
            let declaration = attributes.remove(0);
            attributes.insert(to, declaration);
        }
        self.message += &format!("<{written}");
        for (name, value) in attributes {
            let quote = self.random.pick(&['"', '\'']);
            self.message.push(' ');
            self.space();
            self.message += &name;
            self.space();
            self.message.push('=');
            self.space();
            self.message.push(quote);
            for c in value.chars() {
                self.character(c, |c| matches!(c, '<' | '&' | '\n' | '\t') || c == quote);
            }
            self.message.push(quote);
        }
        self.space();
        if depth == 0 || self.random.chance(15) {
            self.message += "/>";
        } else {
            self.message.push('>');
            for _ in 0..self.random.below(9) {
                self.node(depth - 1);
            }
            self.end_run();
            self.message += &format!("</{written}");
            self.space();
            self.message.push('>');
        }
        self.expected += &format!("</{expanded}>");
        self.bound.truncate(bound);
    }

    fn node(&mut self, depth: usize) {
        match self.random.below(8) {
            0 => self.other(),
            1 => {
                let content: String =
                    (0..self.random.below(5)).map(|_| self.random.pick(&CHARACTERS)).collect();
                self.message += &format!("<![CDATA[{}]]>", content.replace("]]>", ""));
                self.run += &content.replace("]]>", "");
            }
            2..5 => {
                for _ in 0..self.random.below(40) {
                    let c = self.random.pick(&CHARACTERS);
                    self.run.push(c);
                    self.character(c, |c| matches!(c, '<' | '&' | '>'));
                }
            }
            _ => self.element(depth),
        }
    }

    fn other(&mut self) {
        self.end_run();
        let other = self.random.pick(&["<!---->", "<!-- <a>&x; -->", "<?p ?>", "<?pi <a> ?x?>"]);
        self.message += other;
        self.expected += other;
    }

    /// A character, in one of the ways there are to write it.
    fn character(&mut self, c: char, special: impl Fn(char) -> bool) {
        let named = match c {
            '<' => "&lt;",
            '&' => "&amp;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&apos;",
            _ => "",
        };
        match self.random.below(10) {
            0 => self.message += &format!("&#{};", c as u32),
            1 => self.message += &format!("&#x{:X};", c as u32),
            _ if c == '\n' && !special(c) => self.message += self.random.pick(&["\n", "\r\n"]),
            _ if !special(c) => self.message.push(c),
            _ if named.is_empty() => self.message += &format!("&#{};", c as u32),
            _ => self.message += named,
        }
    }

    /// A name as written and as shown; elements, not attributes, are in the default namespace.
    fn name(&mut self, default: bool) -> (String, String) {
        let local = self.random.pick(&NAMES);
        let prefix = self.random.pick(&PREFIXES);
        let uri = self.bound.iter().rev().find(|(bound, _)| *bound == prefix).map(|(_, uri)| *uri);
        match (prefix, uri) {
            ("", Some(uri)) if default && !uri.is_empty() => (local.into(), format!("{{{uri}}}{local}")),
            ("", _) => (local.into(), local.into()),
            (_, Some(uri)) => (format!("{prefix}:{local}"), format!("{{{uri}}}{local}")),
            (_, None) => self.name(default),
        }
    }
}

/// A document and how it is to be shown.
fn document(random: &mut Random) -> (String, String) {
    let mut writer = Writer {
        random,
        message: String::new(),
        expected: String::new(),
        run: String::new(),
        bound: Vec::new(),
    };
    if writer.random.chance(50) {
        writer.message +=
            writer.random.pick(&["<?xml version='1.0'?>", "<?xml version=\"1.0\" encoding='utf-8' ?>"]);
    }
    while writer.random.chance(30) {
        writer.space();
        writer.other();
    }
    writer.element(5);
    while writer.random.chance(30) {
        writer.space();
        writer.other();
    }
    (writer.message, writer.expected)
}

#[test]
fn what_was_written_is_read() {
    let mut random = Random(1);
    let (mut reader, mut read, limits) = (Reader::new(), Document::default(), Limits::default());
    let mut elements = 0;
    for _ in 0..2000 {
        let (message, expected) = document(&mut random);
        reader
            .read(message.as_bytes(), &limits, &mut read)
            .unwrap_or_else(|error| panic!("{error}\n{message}"));
        invariants::check(&read, reader.vocabulary());
        assert_eq!(show::document(&read, reader.vocabulary()), expected, "{message}");
        elements += read.elements.len();

        let utf16: Vec<u8> = format!("\u{FEFF}{message}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16_read = reader.read(&utf16, &limits, &mut read);
        if message.contains("encoding") {
            assert_eq!(utf16_read.unwrap_err().code, "encoding-mismatch");
        } else {
            assert_eq!((utf16_read, &read.source[..]), (Ok(()), message.as_bytes()));
        }
    }
    assert!(elements > 10_000, "{elements}");
}

const SUBSETS: [&str; 3] = [
    "<!DOCTYPE a [<!ENTITY e 'x<b c=\"1\">&f;</b>'><!ENTITY f '&#38;g;'><!ENTITY g \"y\">\
     <!ATTLIST a b CDATA 'd' c NMTOKENS ' e  f'>]><a c=' 1  2 ' d='&g;'>&e;<b>&f;</b>]]&gt;</a>",
    "<!DOCTYPE a PUBLIC '-//x' 's' [<!ELEMENT a (b|c)*><!ENTITY % p '<!ENTITY e \"1\">'>%p;<!-- c --><?p q?>\
     <!NOTATION n SYSTEM 'n'><!ENTITY u SYSTEM 'u' NDATA n>]><a>&e;</a>",
    "<?xml version='1.0' standalone='yes'?><!DOCTYPE a [<!ATTLIST a xmlns:p CDATA 'u' p:b (x|y) 'x'>]><a><p:a/></a>",
];

/// Pieces that mean something to a reader.
const TOKENS: [&str; 32] = [
    "<",
    ">",
    "&",
    ";",
    "'",
    "\"",
    "=",
    "/",
    "!",
    "?",
    "[",
    "]",
    "--",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?",
    "?>",
    "&#",
    "&#x",
    "&e;",
    "%p;",
    "<!DOCTYPE a [",
    "<!ENTITY",
    "xmlns",
    "xmlns:p='u'",
    ":",
    "\r",
    "\0",
    "\u{FFFF}",
    "</a>",
];

/// Changes a message in a few places.
fn mutate(random: &mut Random, message: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        if message.is_empty() {
            return;
        }
        let at = random.below(message.len());
        let until = (at + random.below(12)).min(message.len());
        match random.below(7) {
            0 => message[at] = random.next() as u8,
            1 => message[at] ^= 1 << random.below(8),
            2 => drop(message.drain(at..until)),
            3 => drop(message.splice(at..at, random.pick(&TOKENS).bytes())),
            4 => drop(message.splice(at..until, random.pick(&TOKENS).bytes())),
            5 => {
                let piece = message[at..until].to_vec();
                let to = random.below(message.len());
                drop(message.splice(to..to, piece));
            }
            _ => message.truncate(at),
        }
    }
}

#[test]
fn a_mutated_message_is_read_whole_or_refused() {
    let mut random = Random(2);
    let (mut reader, mut read) = (Reader::new(), Document::default());
    let (mut accepted, mut codes) = (0, std::collections::BTreeSet::new());
    for round in 0..30_000 {
        let limits = Limits {
            internal_subset: round % 4 != 0,
            depth: 6,
            attributes: 3,
            namespaces: 1,
            text: 200,
            expansion: 40,
            ..Limits::default()
        };
        let mut message = match random.below(3) {
            0 => random.pick(&SUBSETS).as_bytes().to_vec(),
            _ => document(&mut random).0.into_bytes(),
        };
        mutate(&mut random, &mut message);
        match reader.read(&message, &limits, &mut read) {
            Ok(()) => {
                invariants::check(&read, reader.vocabulary());
                accepted += 1;
            }
            Err(error) => {
                // In the UTF-8 form, which is longer than UTF-16 by half at most.
                assert!(error.position.offset <= message.len() * 3 / 2 && error.position.line > 0, "{error}");
                assert!(read.elements.is_empty());
                codes.insert(error.code);
            }
        }
    }
    // Neither all good nor all bad, and bad in most of the ways there are.
    assert!((1000..29_000).contains(&accepted), "{accepted}");
    assert!(codes.len() > 33, "{} {codes:?}", codes.len());
}
