//! Ids are types, not bare integers: a name is never mistaken for a node.

/// An id, as tables by id use it.
pub trait Id: Copy + PartialEq {
    const NONE: Self;

    fn index(self) -> usize;
}

/// Declares a `u32` newtype with `index()` and a `NONE` that no real id takes.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name(pub u32);

        impl $name {
            /// Stands for "there is none".
            pub const NONE: $name = $name(u32::MAX);

            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            #[inline(always)]
            pub fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            #[inline(always)]
            pub fn is_some(self) -> bool {
                self.0 != u32::MAX
            }
        }

        impl Id for $name {
            const NONE: $name = $name::NONE;

            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline(always)]
            fn from(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }
        }
    };
}

id! {
    /// A branch point of queries that can bind several elements, in a segment.
    AnchorId
}
id! {
    /// Something that a message contains or not, in a segment: a trie node is bound, or an element has a value.
    ConditionId
}
id! {
    /// A tenant of a segment.
    TenantId
}
id! {
    /// A name test of queries, in a segment. `LabelId(0)` is `*`; `LabelId::NONE` a name that no query tests for.
    LabelId
}
id! {
    /// A subject that queries test below a trie node: an attribute, by the label of its name test, or one of the
    /// constants in `segment::format::entries`.
    SubjectId
}
id! {
    /// A node of the trie of a segment's linear paths: a prefix of some of them.
    TrieNodeId
}
id! {
    /// A query of a segment.
    SegmentQuery
}
id! {
    /// A query of a generation: the queries of all its segments are numbered consecutively.
    GenerationQuery
}
id! {
    /// A namespace URI in a `Vocabulary`; `UriId(0)` is "no namespace".
    UriId
}
id! {
    /// An expanded name (namespace URI, local part) in a `Vocabulary`.
    NameId
}
id! {
    /// The names from the root element down to an element, as one number in a `Vocabulary`.
    TagPathId
}
id! {
    /// A node's number in pre-order over all nodes of a document; the document node is 0.
    NodeId
}
id! {
    /// An element's place in `Document::elements`, also in pre-order.
    ElementId
}

impl SegmentQuery {
    /// Its number in a generation in which the segment's first query is `first`.
    #[inline(always)]
    pub fn in_generation(self, first: GenerationQuery) -> GenerationQuery {
        GenerationQuery(first.0 + self.0)
    }
}

impl GenerationQuery {
    /// Its number in the segment whose first query is `first`.
    #[inline(always)]
    pub fn in_segment(self, first: GenerationQuery) -> SegmentQuery {
        SegmentQuery(self.0 - first.0)
    }
}

impl TenantId {
    /// The root of the tenant's linear paths in the trie: each tenant has its own, and they are the first nodes.
    #[inline(always)]
    pub fn root(self) -> TrieNodeId {
        TrieNodeId(self.0)
    }
}

impl LabelId {
    /// The label of `*`, which is the least.
    pub const ANY: LabelId = LabelId(0);
}
