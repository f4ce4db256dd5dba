//! Decides candidates whose anchors bound several elements: from the occurrences of their conditions if that is
//! possible, else on the document.

use super::occurrences::TracedDocument;
use super::settle::Settler;
use super::unsettled::Unsettled;
use super::verify::Verifier;
use crate::ids::SegmentQuery;
use crate::matching::budget::Decided;
use crate::segment::format::columns::View;

/// Decides the candidates of one segment in one message.
pub struct TwigDecider<'a> {
    pub view: View<'a>,
    /// `None` if the message was matched without the DFA, which leaves no occurrences.
    pub traced: Option<TracedDocument<'a>>,
    pub settler: &'a mut Settler,
    pub verifier: Verifier<'a>,
}

impl TwigDecider<'_> {
    /// Announces a row to settle. All are announced before the first is settled, so that occurrences are only
    /// recorded for the conditions and anchors of these rows.
    pub fn expect(&mut self, row: &Unsettled) {
        self.settler.expect(row);
    }

    /// Whether the conditions of a row hold together; `None` if only `verify` can tell.
    pub fn settle(&mut self, row: &Unsettled) -> Option<bool> {
        self.settler.settle(row, self.traced?)
    }

    /// Whether a query matches, evaluated on the document.
    pub fn verify(&mut self, query: SegmentQuery) -> Decided {
        self.verifier.matches(self.view.query_twig[query.index()])
    }
}
