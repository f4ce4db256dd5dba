//! Regular expressions of XPath 2.0 and 3.1 (`matches()`, `replace()`, `tokenize()`), translated for the crate `regex`,
//! which finds them in linear time.
//!
//! ```text
//! ^\i\c*$                   \A[…name starts…][…name characters…]*\z
//! [a-z-[aeiou]]+            [[\x{61}-\x{7A}]--[\x{61}\x{65}…]]+
//! .  without the flag `s`   [^\n\r]
//! ```
//!
//! Both syntaxes look alike but differ in meaning, so each construct is parsed and written in the other syntax. A
//! construct that needs backtracking (back-references, look-around) is refused by name.

use std::fmt::Write;

use regex::bytes::{Regex, RegexBuilder};

use super::ast::Literal;
use super::value::Value;
use crate::limits::PATTERN_SIZE_LIMIT;

/// A regular expression that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// In the syntax of the crate `regex`.
    translated: String,
    /// The number of characters and classes, with repetitions written out: the cost of searching one character.
    pub size: usize,
    /// Whether the empty string matches.
    pub matches_empty: bool,
    /// The number of capturing groups.
    pub groups: usize,
}

/// Why a pattern or its flags are not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadPattern {
    Syntax(String),
    /// The size that the pattern has at least.
    TooLarge(usize),
}

/// Groups nested deeper than this are refused: the reader is recursive.
const DEPTH: usize = 50;
/// The size of a class of characters, which is many ranges of bytes.
const CLASS_SIZE: usize = 16;

const NAME_START: &str = r":A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}";
const NAME_REST: &str = r"\-.0-9\xB7\x{300}-\x{36F}\x{203F}-\x{2040}";

const CATEGORIES: [&str; 37] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
    "Cs",
];

impl Pattern {
    /// Reads a pattern and flags (`i`, `m`, `s`, `x`, `q`).
    pub fn parse(pattern: &str, flags: &str) -> Result<Pattern, BadPattern> {
        if let Some(flag) = flags.chars().find(|flag| !"imsxq".contains(*flag)) {
            return Err(BadPattern::Syntax(format!("there is no flag {flag:?}; flags are i, m, s, x and q")));
        }
        let has = |flag| flags.contains(flag);
        let mut reader = Reader {
            text: pattern,
            at: 0,
            out: if has('i') { "(?i)".to_string() } else { String::new() },
            dot_all: has('s'),
            lines: has('m'),
            spaced: has('x') && !has('q'),
            depth: 0,
            groups: 0,
        };
        let part = if has('q') {
            pattern.chars().for_each(|character| reader.literal(character));
            Part { size: pattern.len(), is_nullable: pattern.is_empty() }
        } else {
            reader.alternatives()?
        };
        if reader.at < pattern.len() && !has('q') {
            return reader.fail("`)` closes no group; write `\\)`");
        }
        if part.size > PATTERN_SIZE_LIMIT {
            return Err(BadPattern::TooLarge(part.size));
        }
        let (size, matches_empty) = (part.size, part.is_nullable);
        Ok(Pattern { translated: reader.out, size, matches_empty, groups: reader.groups })
    }

    /// The pattern of a call, whose flags are the argument after it: both are literals.
    pub fn of_arguments(arguments: &[Value], pattern: usize, flags: usize) -> Option<Pattern> {
        let text = |value: &Value| match value {
            Value::Literal(Literal::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let flags = arguments.get(flags).map_or(Some(String::new()), text)?;
        Pattern::parse(&text(arguments.get(pattern)?)?, &flags).ok()
    }

    /// Compiles it. Every pattern that was read compiles: its size is limited more strictly than the compiled form.
    pub fn compile(&self) -> Option<Regex> {
        RegexBuilder::new(&self.translated).size_limit(64 << 20).dfa_size_limit(1 << 20).build().ok()
    }
}

/// The strings that a pattern without flags matches, if it lists them: `^(EUR|USD)$`, `^a\.b$`.
pub fn listed(pattern: &str) -> Option<Vec<String>> {
    let inside = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inside = match inside.strip_prefix("(?:").or_else(|| inside.strip_prefix('(')) {
        Some(group) => group.strip_suffix(')')?,
        None if inside.contains('|') => return None,
        None => inside,
    };
    inside.split('|').map(plain_text).collect()
}

/// The text that a part of a pattern without special characters stands for.
fn plain_text(part: &str) -> Option<String> {
    const SPECIAL: &str = "\\|.-^?*+{}()[]$";
    let mut text = String::with_capacity(part.len());
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => characters.next().filter(|&escaped| SPECIAL.contains(escaped))?,
            '-' => character,
            special if SPECIAL.contains(special) => return None,
            character => character,
        });
    }
    Some(text)
}

/// A part of a pattern that was read.
#[derive(Clone, Copy)]
struct Part {
    size: usize,
    /// Whether it matches the empty string.
    is_nullable: bool,
}

struct Reader<'p> {
    text: &'p str,
    at: usize,
    out: String,
    dot_all: bool,
    lines: bool,
    /// White space outside of classes is ignored.
    spaced: bool,
    depth: usize,
    groups: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T, BadPattern> {
        let place = self.text[..self.at.min(self.text.len())].chars().count() + 1;
        Err(BadPattern::Syntax(format!("{} (at character {place} of the pattern)", reason.into())))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let is_there = self.text[self.at..].starts_with(wanted);
        self.at += if is_there { wanted.len() } else { 0 };
        is_there
    }

    fn skip_space(&mut self) {
        while self.spaced && self.peek().is_some_and(|next| matches!(next, ' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn literal(&mut self, character: char) {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => self.out.push(character),
            _ => _ = write!(self.out, "\\x{{{:X}}}", u32::from(character)),
        }
    }

    /// `alternatives = branch ("|" branch)*`
    fn alternatives(&mut self) -> Result<Part, BadPattern> {
        let mut all = self.branch()?;
        while self.takes("|") {
            self.out.push('|');
            let next = self.branch()?;
            all = Part { size: all.size + next.size, is_nullable: all.is_nullable || next.is_nullable };
        }
        Ok(all)
    }

    /// `branch = (atom quantifier?)*`
    fn branch(&mut self) -> Result<Part, BadPattern> {
        let mut all = Part { size: 0, is_nullable: true };
        loop {
            self.skip_space();
            if matches!(self.peek(), None | Some('|' | ')')) {
                return Ok(all);
            }
            let start = self.out.len();
            let atom = self.atom()?;
            self.skip_space();
            let part = self.quantified(atom, start)?;
            all = Part {
                size: all.size.saturating_add(part.size),
                is_nullable: all.is_nullable && part.is_nullable,
            };
            if all.size > PATTERN_SIZE_LIMIT {
                return Err(BadPattern::TooLarge(all.size));
            }
        }
    }

    fn atom(&mut self) -> Result<Part, BadPattern> {
        let one = Part { size: 1, is_nullable: false };
        let class = Part { size: CLASS_SIZE, is_nullable: false };
        let nothing = Part { size: 1, is_nullable: true };
        match self.take() {
            Some('^') => {
                self.out.push_str(if self.lines { "(?m:^)" } else { "\\A" });
                Ok(nothing)
            }
            Some('$') => {
                self.out.push_str(if self.lines { "(?m:$)" } else { "\\z" });
                Ok(nothing)
            }
            Some('.') => {
                self.out.push_str(if self.dot_all { "(?s:.)" } else { "[^\\n\\r]" });
                Ok(class)
            }
            Some('(') => self.group(),
            Some('[') => {
                self.class()?;
                Ok(class)
            }
            Some('\\') => Ok(match self.escape()? {
                Escaped::Character(character) => {
                    self.literal(character);
                    one
                }
                Escaped::Class(text) => {
                    self.out.push_str(&text);
                    class
                }
            }),
            Some(quantifier @ ('?' | '*' | '+' | '{')) => {
                self.fail(format!("`{quantifier}` repeats nothing; write `\\{quantifier}`"))
            }
            Some(bracket @ (']' | '}')) => {
                self.fail(format!("`{bracket}` closes nothing; write `\\{bracket}`"))
            }
            Some(character) => {
                self.literal(character);
                Ok(one)
            }
            None => self.fail("the pattern ends too early"),
        }
    }

    fn group(&mut self) -> Result<Part, BadPattern> {
        let captures = !self.takes("?:");
        if captures && self.peek() == Some('?') {
            return self.fail("look-around, named groups and inline flags `(?…)` are not supported");
        }
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(format!("groups are nested more than {DEPTH} deep"));
        }
        self.groups += usize::from(captures);
        self.out.push_str(if captures { "(" } else { "(?:" });
        let inside = self.alternatives()?;
        if !self.takes(")") {
            return self.fail("a group is not closed by `)`");
        }
        self.out.push(')');
        self.depth -= 1;
        Ok(inside)
    }

    /// `quantifier = ("?" | "*" | "+" | "{" n "}" | "{" n "," m? "}") "?"?`
    fn quantified(&mut self, atom: Part, start: usize) -> Result<Part, BadPattern> {
        let (fewest, most) = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.at += 1;
                let fewest = self.count()?;
                let most = match self.takes(",") {
                    true if self.peek() == Some('}') => None,
                    true => Some(self.count()?),
                    false => Some(fewest),
                };
                if self.peek() != Some('}') {
                    return self.fail("a quantifier is not closed by `}`");
                }
                if most.is_some_and(|most| most < fewest) {
                    return self.fail("a quantifier has a smaller number after the comma than before");
                }
                (fewest, most)
            }
            _ => return Ok(atom),
        };
        self.at += 1;
        // An anchor or group that is written as several characters stays one operand.
        self.out.insert_str(start, "(?:");
        self.out.push(')');
        match most {
            Some(most) => _ = write!(self.out, "{{{fewest},{most}}}"),
            None => _ = write!(self.out, "{{{fewest},}}"),
        }
        self.skip_space();
        if self.takes("?") {
            self.out.push('?');
        }
        self.skip_space();
        if let Some(next @ ('?' | '*' | '+' | '{')) = self.peek() {
            return self.fail(format!("`{next}` repeats a quantifier"));
        }
        let copies = most.unwrap_or(fewest + 1).max(1);
        Ok(Part { size: atom.size.saturating_mul(copies), is_nullable: atom.is_nullable || fewest == 0 })
    }

    fn count(&mut self) -> Result<usize, BadPattern> {
        let start = self.at;
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
        }
        match self.text[start..self.at].parse::<usize>() {
            Ok(count) if count <= PATTERN_SIZE_LIMIT => Ok(count),
            Ok(count) => Err(BadPattern::TooLarge(count)),
            Err(_) => self.fail("a quantifier needs a number"),
        }
    }

    /// After a backslash.
    fn escape(&mut self) -> Result<Escaped, BadPattern> {
        let class = |text: &str| Ok(Escaped::Class(text.to_string()));
        match self.take() {
            Some('n') => Ok(Escaped::Character('\n')),
            Some('r') => Ok(Escaped::Character('\r')),
            Some('t') => Ok(Escaped::Character('\t')),
            Some(
                character @ ('\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']'
                | '^' | '$'),
            ) => Ok(Escaped::Character(character)),
            Some('s') => class(r"[\x20\t\n\r]"),
            Some('S') => class(r"[^\x20\t\n\r]"),
            Some('d') => class(r"\p{Nd}"),
            Some('D') => class(r"\P{Nd}"),
            Some('w') => class(r"[^\p{P}\p{Z}\p{C}]"),
            Some('W') => class(r"[\p{P}\p{Z}\p{C}]"),
            Some('i') => Ok(Escaped::Class(format!("[{NAME_START}]"))),
            Some('I') => Ok(Escaped::Class(format!("[^{NAME_START}]"))),
            Some('c') => Ok(Escaped::Class(format!("[{NAME_START}{NAME_REST}]"))),
            Some('C') => Ok(Escaped::Class(format!("[^{NAME_START}{NAME_REST}]"))),
            Some(kind @ ('p' | 'P')) => {
                let rest = &self.text[self.at..];
                let Some(name) =
                    rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name)
                else {
                    return self.fail(format!("`\\{kind}` needs a category in braces: `\\{kind}{{Lu}}`"));
                };
                if name.starts_with("Is") {
                    return self.fail(format!(
                        "blocks like `{name}` are not supported; write a range of characters"
                    ));
                }
                if !CATEGORIES.contains(&name) {
                    return self.fail(format!("there is no category `{name}`"));
                }
                self.at += name.len() + 2;
                match (name, kind) {
                    // Surrogates are no characters.
                    ("Cs", 'p') => class(r"[^\x{0}-\x{10FFFF}]"),
                    ("Cs", _) => class(r"[\x{0}-\x{10FFFF}]"),
                    _ => Ok(Escaped::Class(format!("\\{kind}{{{name}}}"))),
                }
            }
            Some('1'..='9') => self.fail("back-references are not supported"),
            Some(other) => self.fail(format!("`\\{other}` is no escape of XPath")),
            None => self.fail("the pattern ends in `\\`"),
        }
    }

    /// After `[`: ranges, escapes, and what `-[…]` subtracts.
    fn class(&mut self) -> Result<(), BadPattern> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(format!("classes are nested more than {DEPTH} deep"));
        }
        let is_negative = self.takes("^");
        self.out.push_str(if is_negative { "[[^" } else { "[[" });
        let mut is_empty = true;
        loop {
            let at_subtraction = !is_empty && self.text[self.at..].starts_with("-[");
            if at_subtraction {
                self.at += 2;
                self.out.push_str("]--");
                self.class()?;
                if !self.takes("]") {
                    return self.fail("`]` is expected after a subtraction");
                }
                self.out.push(']');
                break;
            }
            match self.peek() {
                None => return self.fail("a class is not closed by `]`"),
                Some(']') if is_empty => return self.fail("a class is empty"),
                Some(']') => {
                    self.at += 1;
                    self.out.push_str("]]");
                    break;
                }
                Some('[') => return self.fail("`[` in a class is written `\\[`"),
                _ => {}
            }
            is_empty = false;
            let first = match self.class_item()? {
                Escaped::Class(text) => {
                    self.out.push_str(&text);
                    continue;
                }
                Escaped::Character(first) => first,
            };
            let rest = &self.text[self.at..];
            let is_range = rest.starts_with('-') && !rest.starts_with("-]") && !rest.starts_with("-[");
            self.literal(first);
            if !is_range {
                continue;
            }
            self.at += 1;
            match self.class_item()? {
                Escaped::Character(last) if first <= last => {
                    self.out.push('-');
                    self.literal(last);
                }
                _ => return self.fail("the range of a class ends before it starts"),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn class_item(&mut self) -> Result<Escaped, BadPattern> {
        match self.take() {
            Some('\\') => self.escape(),
            Some(character) => Ok(Escaped::Character(character)),
            None => self.fail("a class is not closed by `]`"),
        }
    }
}

enum Escaped {
    Character(char),
    /// A class in the syntax of the crate.
    Class(String),
}
