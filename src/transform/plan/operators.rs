//! The operators of a network, each told from others by its signature, and what is known of them before they run.

use crate::document::Element;
use crate::query::ast::{Axis, Operator};
use crate::query::decompose::Reach;
use crate::query::element_path::ElementPath;
use crate::transform::plan::claims::Claim;

/// The elements at the end of a line, from the automaton.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    pub root: u32,
    pub line: ElementPath,
}

/// What a stream needs while it is made.
pub struct StreamPlan {
    /// The trie node that the elements bind.
    pub node: u32,
    /// Axis and label of each step.
    pub steps: Vec<(Axis, u32)>,
}

/// Pairs of a bound element and an element that the path from there leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Join {
    /// ElementsByAcceptSet; the line of `binding` begins that of `end`.
    pub binding: u32,
    pub end: u32,
}

pub struct JoinPlan {
    /// How many steps the path from the bound element has.
    pub rest: usize,
    /// How far below the bound element it leads.
    pub reach: Reach,
    /// The depth of all bound elements, if it is one (claim 4): what is found from there tells which it is.
    pub depth: Option<u32>,
    /// What proves that no pair is found twice; without it duplicates are eliminated.
    pub distinct: Option<Claim>,
    /// What proves that pairs come ordered by the bound element, to be merged; else they are sorted.
    pub ordered: Option<Claim>,
}

impl JoinPlan {
    /// How many levels above an element at the end the bound element is, if that is clear.
    #[inline]
    pub fn levels(&self, end: &Element) -> Option<u32> {
        match (self.reach, self.depth) {
            (Reach::Exactly(levels), _) => Some(levels),
            (_, Some(depth)) => Some(end.depth - depth),
            _ => None,
        }
    }

    /// Whether pairs come ordered by the bound element.
    pub fn is_ordered(&self) -> bool {
        self.rest == 0 || self.ordered.is_some()
    }
}

/// The values that one kind of comparison looks at, indexed: constants look themselves up.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    pub join: u32,
    pub subject: Subject,
    pub numeric: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The string-value.
    Value,
    /// Each text node that is a child.
    Text,
    /// Each attribute with this label.
    Attribute(u32),
}

/// Which bound elements pass a predicate.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A path leads somewhere.
    Exists { join: u32, leaf: Option<Subject> },
    /// A value compares with a constant.
    Compare { selection: u32, operator: Operator, constant: Constant },
    /// The same, if the index has it as a condition of its own: matching has found where it holds, and nothing
    /// is left to compare. It is compared after all where matching could not tell.
    Found { condition: u32, join: u32, compared: u32 },
    /// Anything else, decided on the message: the twig of a predicate, and the stream it filters.
    Twig { stream: u32, twig: TwigVariants },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Constant {
    Text(Box<[u8]>),
    /// By its bits.
    Number(u64),
}

/// The elements that a block binds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Bindings {
    /// Those of a stream, if conditions hold at the steps that have some: (step, condition).
    Joined { stream: u32, conditions: Vec<(u32, u32)> },
    /// Decided on the message: the twig of the path.
    Twig { twig: u32 },
}

/// The nodes that a return path takes, by bound element.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Group {
    Joined {
        join: u32,
        leaf: Option<Subject>,
    },
    /// Decided on the message: the twig of the path.
    Twig {
        twig: TwigVariants,
    },
}

/// A twig that is walked from several elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TwigVariants {
    pub plain: u32,
    /// The same twig for elements that lie deep in one another, from which walks come by the same places: it
    /// remembers what was decided there, which costs more than deciding it a few times.
    pub remembering: u32,
}

/// Where the elements are that a block binds. Often bindings are what one operator below them gives, and are
/// taken from there.
#[derive(Clone, Copy)]
pub enum BindingSource {
    Stream(u32),
    Condition(u32),
    Joined(u32),
}

/// A block as operators: an outer-join-select of the groups with the bindings.
pub struct BlockPlan {
    pub bindings: u32,
    pub bound: BindingSource,
    pub groups: Vec<u32>,
    /// What proves that no element is bound twice.
    pub distinct: Option<Claim>,
}

/// An operator, by its kind and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperatorId {
    Stream(u32),
    Join(u32),
    Selection(u32),
    Condition(u32),
    Bindings(u32),
    Group(u32),
}

/// A transformation, planned.
pub struct Plan {
    /// What is constructed of what is bound: one for transformations that differ in what they bind only.
    pub construction: u32,
    pub blocks: Vec<BlockPlan>,
    /// All that it runs, in the order of planning.
    pub operators: Vec<OperatorId>,
    /// The conditions of the index that it asks for the places of.
    pub found: Vec<u32>,
}
