//! `<!DOCTYPE name SYSTEM "…" [ … ]>`: accepted, never fetched, its internal subset read only on demand.

use super::fault::Read;
use super::reader::Parse;
use super::scan::{SPACE, is, skip};

/// What a document type declaration means for the rest of the document.
#[derive(Default)]
pub(super) struct Doctype {
    /// There are declarations we have not read, so that an entity may be declared without our
    /// knowing.
    pub incomplete: bool,
}

impl Parse<'_> {
    /// The declaration at `at`; gives the place after it.
    pub fn doctype(&mut self, start: usize) -> Read<usize> {
        let mut doctype = Doctype::default();
        let mut at = self.require_space(start + "<!DOCTYPE".len())?;
        let name_end = skip(self.text, at, super::scan::NAME);
        let name = self
            .scratch
            .lexicon
            .add(self.text, at, name_end - at, self.vocabulary);
        name.map_err(|reason| self.fault("bad-doctype", reason, at))?;
        at = skip(self.text, name_end, SPACE);
        let keyword = &self.text[at..at + 6];
        if keyword == b"SYSTEM" || keyword == b"PUBLIC" {
            if at == name_end {
                return Err(self.fault("bad-doctype", "white space expected", at));
            }
            doctype.incomplete = true;
            let mut after = self.require_space(at + 6)?;
            if keyword == b"PUBLIC" {
                let end = self.literal(after)?;
                let is_public = |b: &u8| b.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(b);
                if !self.text[after + 1..end - 1].iter().all(is_public) {
                    let reason = "a character that may not stand in a public identifier";
                    return Err(self.fault("bad-doctype", reason, after));
                }
                after = self.require_space(end)?;
            }
            at = skip(self.text, self.literal(after)?, SPACE);
        }
        if self.text[at] == b'[' {
            if !self.limits.internal_subset {
                return Err(self.fault(
                    "internal-subset",
                    "an internal DTD subset is not allowed here",
                    at,
                ));
            }
            return Err(self.fault(
                "internal-subset",
                "an internal DTD subset is not supported yet",
                at,
            ));
        }
        if self.text[at] != b'>' {
            let code = if at == self.end {
                "truncated"
            } else {
                "bad-doctype"
            };
            return Err(self.fault(code, "the document type declaration does not end here with >", at));
        }
        let _ = self.doctype.set(doctype);
        Ok(at + 1)
    }

    fn require_space(&self, at: usize) -> Read<usize> {
        if is(self.text[at], SPACE) {
            return Ok(skip(self.text, at, SPACE));
        }
        let code = if at == self.end {
            "truncated"
        } else {
            "bad-doctype"
        };
        Err(self.fault(code, "white space expected", at))
    }

    /// A literal in quotes at `at`; gives the place after it.
    fn literal(&self, at: usize) -> Read<usize> {
        let quote = self.text[at];
        if quote != b'"' && quote != b'\'' {
            let code = if at == self.end {
                "truncated"
            } else {
                "bad-doctype"
            };
            return Err(self.fault(code, "an identifier in quotes expected", at));
        }
        match memchr::memchr(quote, &self.text[at + 1..self.end]) {
            Some(length) => Ok(at + length + 2),
            None => Err(self.fault("truncated", "the identifier does not end", at)),
        }
    }
}
