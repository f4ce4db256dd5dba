//! Evaluates the twigs of a network, for predicates and paths that streams cannot decide.

use crate::document::Document;
use crate::ids::ElementId;
use crate::matching::budget::Budget;
use crate::matching::twigs::by_name::ElementsByName;
use crate::matching::twigs::verify::{Memo, Trees, Verifier};
use crate::transform::plan::TwigVariants;
use crate::tuning::NESTED_ELEMENTS;

pub struct TwigEvaluator<'a> {
    pub words: &'a [u32],
    pub document: &'a Document,
    pub trees: Trees<'a>,
    pub by_name: &'a mut ElementsByName,
    pub memo: &'a mut Memo,
    /// The steps of the transformation at hand, whichever operators it runs first.
    pub budget: Budget,
}

impl TwigEvaluator<'_> {
    /// Which variant of a twig to evaluate at elements, given in document order.
    pub(super) fn choose(&self, twig: TwigVariants, elements: impl Iterator<Item = ElementId>) -> u32 {
        if twig.plain == twig.memoized {
            return twig.plain;
        }
        // The ends of the elements around the current one.
        let mut ends = [ElementId(0); NESTED_ELEMENTS];
        let mut nesting = 0;
        for element in elements {
            while nesting > 0 && ends[nesting - 1] <= element {
                nesting -= 1;
            }
            if nesting == NESTED_ELEMENTS {
                return twig.memoized;
            }
            ends[nesting] = self.document.element(element).end;
            nesting += 1;
        }
        twig.plain
    }

    #[inline]
    pub fn verifier(&mut self) -> Verifier<'_> {
        let TwigEvaluator { words, trees, by_name, memo, budget, .. } = self;
        Verifier::new(words, *trees, by_name, memo, budget)
    }
}
