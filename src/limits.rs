//! All limits on messages and queries. An error that reports one has a code that ends in `-limit`, and both
//! numbers.

/// Limits on a message, set per call. Each has its own error code, `<field>-limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a message, as received and as UTF-8.
    pub document: usize,
    pub depth: usize,
    /// Attributes of one element.
    pub attributes: usize,
    /// Namespace declarations of one element.
    pub namespaces: usize,
    /// Bytes of one name.
    pub name: usize,
    /// Whether messages came as strings: then they are UTF-8, and encodings in XML declarations are ignored.
    pub known_utf8: bool,
    /// Bytes of one run of text, attribute value, comment or processing instruction.
    pub text: usize,
    /// Whether an internal DTD subset is read; if not, the message is refused.
    pub internal_subset: bool,
    /// Whether references to entities that were not read (they are external, or an external part of the DTD may
    /// declare them) are left out and counted; if not, the message is refused.
    pub skip_unread_entities: bool,
    /// Bytes that entity references and declared defaults of attributes may add to one message.
    pub expansion: usize,
    /// Nodes that the blocks of a transformation may bind in one message, and also that they may return.
    pub bindings: usize,
    /// Records of local data that one message may meet by the joins of all queries.
    pub tuples: usize,
    /// Bytes of the output of one transformation for one message.
    pub output: usize,
    /// Bytes of the outputs of all transformations for one message.
    pub outputs: usize,
    /// Steps that one query may take on one message, see `Budget`.
    pub work: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            document: 10 << 20,
            depth: 256,
            attributes: 256,
            namespaces: 64,
            name: 1 << 10,
            known_utf8: false,
            text: 10 << 20,
            internal_subset: false,
            skip_unread_entities: false,
            expansion: 1 << 20,
            bindings: 1 << 20,
            tuples: 1 << 17,
            output: 10 << 20,
            outputs: 256 << 20,
            work: 1 << 28,
        }
    }
}

// The limits on queries are constants: the canonical text of a stored query must parse again.

/// Bytes of a query, as written and with unions and prefixes expanded.
pub const QUERY_TEXT_LIMIT: usize = 64 << 10;
/// Levels of nested parentheses, brackets, function calls and constructed elements.
pub const QUERY_DEPTH_LIMIT: usize = 64;
/// Steps, predicates, operands and constructed nodes of a query.
pub const QUERY_NODES_LIMIT: usize = 4096;
/// Bytes of one string literal.
pub const QUERY_LITERAL_LIMIT: usize = 16 << 10;
/// Records of a collection that a query may read for want of an equality that finds those it meets.
pub const SCANNED_RECORDS_LIMIT: usize = 1000;
/// Characters and classes of a regular expression, with repetitions written out.
pub const PATTERN_SIZE_LIMIT: usize = 4096;
