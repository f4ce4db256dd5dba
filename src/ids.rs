//! Ids are types, not bare integers: a name is never mistaken for a node.

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
