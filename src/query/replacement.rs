//! `replace()` and `tokenize()`: replace the matches of a regular expression, or split a text at them.

use regex::bytes::Regex;

/// The replacement of `replace()`: literal text and numbers of groups. `\$` and `\\` are the characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    parts: Vec<ReplacementPart>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum ReplacementPart {
    Text(String),
    Group(usize),
}

impl Replacement {
    /// Reads a replacement. With the flag `q` it is plain text.
    pub fn parse(text: &str, groups: usize, is_plain: bool) -> Result<Replacement, String> {
        if is_plain {
            return Ok(Replacement { parts: vec![ReplacementPart::Text(text.to_string())] });
        }
        let (mut parts, mut literal) = (Vec::new(), String::new());
        let mut rest = text.chars().peekable();
        while let Some(next) = rest.next() {
            match next {
                '\\' => match rest.next() {
                    Some(escaped @ ('\\' | '$')) => literal.push(escaped),
                    _ => return Err("in the replacement, `\\` stands before `\\` or `$` only".to_string()),
                },
                '$' => {
                    let digit = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| {
                        rest.peek().and_then(|next| next.to_digit(10)).map(|digit| digit as usize)
                    };
                    let Some(mut group) = digit(&mut rest) else {
                        return Err(
                            "in the replacement, `$` stands before the number of a group; write `\\$`"
                                .to_string(),
                        );
                    };
                    rest.next();
                    // As many digits as still name a group.
                    while let Some(more) = digit(&mut rest).map(|digit| group * 10 + digit)
                        && more <= groups
                    {
                        group = more;
                        rest.next();
                    }
                    parts.push(ReplacementPart::Text(std::mem::take(&mut literal)));
                    parts.push(ReplacementPart::Group(group));
                }
                other => literal.push(other),
            }
        }
        parts.push(ReplacementPart::Text(literal));
        Ok(Replacement { parts })
    }

    /// The text with every match replaced; `None` once it is longer than `most` bytes.
    pub fn replace(&self, regex: &Regex, text: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut copied = 0;
        for captures in regex.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            out.extend_from_slice(&text[copied..whole.start()]);
            for part in &self.parts {
                match part {
                    ReplacementPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                    ReplacementPart::Group(group) => {
                        out.extend_from_slice(
                            captures.get(*group).map_or(&b""[..], |group| group.as_bytes()),
                        );
                    }
                }
            }
            copied = whole.end();
            if out.len() > most {
                return None;
            }
        }
        out.extend_from_slice(&text[copied..]);
        Some(out)
    }
}

/// `tokenize()`: the parts of a text between matches; of the empty text, none.
pub fn tokenize<'t>(regex: &Regex, text: &'t [u8]) -> Vec<&'t [u8]> {
    if text.is_empty() { Vec::new() } else { regex.split(text).collect() }
}
