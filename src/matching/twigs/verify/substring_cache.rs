//! Looking for a literal in string-values. They overlap, an element's holds those of all elements
//! below it, so what one search has seen is remembered: a message's text is searched about once for
//! a literal, however deeply its elements nest.

use crate::document::Span;

/// Where a literal begins in a text, as far as it was searched: not from `from` up to `until`, and
/// at `until` if it was found.
#[derive(Clone, Copy, Default)]
pub struct Sought {
    from: usize,
    until: usize,
    found: bool,
}

impl Sought {
    /// Whether the literal is in a span of the text.
    pub fn is_in(&mut self, text: &[u8], span: Span, literal: &[u8]) -> bool {
        let (start, end) = (span.start as usize, span.end as usize);
        if start < self.from || start > self.until {
            *self = Sought { from: start, until: start, found: false };
        }
        if !self.found && self.until + literal.len() <= end {
            let at = memchr::memmem::find(&text[self.until..end], literal);
            self.found = at.is_some();
            self.until += at.unwrap_or(end - self.until - literal.len() + 1);
        }
        self.found && self.until + literal.len() <= end
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
                let mut sought = Sought::default();
                for at in 0..spans.len() {
                    let span = spans[at * stride % spans.len()];
                    let expected = memchr::memmem::find(span.of(text), literal.as_bytes()).is_some();
                    assert_eq!(sought.is_in(text, span, literal.as_bytes()), expected, "{literal} {span:?}");
                }
            }
        }
    }
}
