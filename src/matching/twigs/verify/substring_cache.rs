//! Substring search in string-values. They overlap: that of an element contains those of all elements below it. So the
//! result of each search is cached, and the text of a message is searched about once for a literal, however deeply
//! its elements are nested.
//!
//! Example: the literal `x` in `<a><b>uv</b>wx</a>`. The search in `a` (`uvwx`) finds the first `x` at 3; then `b` (`uv`)
//! ends before 3 and does not contain it, without a search.

use crate::document::Span;
use crate::matching::budget::{Budget, WorkLimit};

/// The last search for a literal: it does not begin at `from..until`, and it begins at `until` if it was found.
#[derive(Clone, Copy, Default)]
pub struct SubstringCache {
    from: usize,
    until: usize,
    found: bool,
}

impl SubstringCache {
    /// Whether the literal is in a span of the text.
    pub fn is_in(
        &mut self,
        text: &[u8],
        span: Span,
        literal: &[u8],
        budget: &mut Budget,
    ) -> Result<bool, WorkLimit> {
        let (start, end) = (span.start as usize, span.end as usize);
        if start < self.from || start > self.until {
            *self = SubstringCache { from: start, until: start, found: false };
        }
        if !self.found && self.until + literal.len() <= end {
            let at = memchr::memmem::find(&text[self.until..end], literal);
            let searched = at.unwrap_or(end - self.until - literal.len() + 1);
            self.found = at.is_some();
            self.until += searched;
            budget.spend_bytes(searched)?;
        }
        Ok(self.found && self.until + literal.len() <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_any_order_are_searched_right() {
        let text = b"abcabbabcaabcbcabcc";
        for literal in ["a", "abc", "bb", "cc", "x", "", "abcabbabcaabcbcabcc"] {
            let spans: Vec<Span> = (0..=text.len())
                .flat_map(|start| (start..=text.len()).map(move |end| (start, end)))
                .map(|(start, end)| Span { start: start as u32, end: end as u32 })
                .collect();
            // Every few: nested, overlapping, forwards and backwards.
            for stride in [1, 7, 53, 101] {
                let (mut substrings, mut budget) = (SubstringCache::default(), Budget::unlimited());
                for at in 0..spans.len() {
                    let span = spans[at * stride % spans.len()];
                    let expected = memchr::memmem::find(span.of(text), literal.as_bytes()).is_some();
                    let found = substrings.is_in(text, span, literal.as_bytes(), &mut budget);
                    assert_eq!(found, Ok(expected), "{literal} {span:?}");
                }
            }
        }
    }
}
