//! Thresholds and memory bounds of building segments, matching and transforming, in one place.
//!
//! They change how long an answer takes and how much memory it needs, never the answer. `Tuning` holds those
//! that tests vary: thresholds between a method for small inputs and one for large inputs. The constants are
//! read in hot loops or need no variation. Limits of the input are in `limits`; constants of a file format
//! are beside the format.

/// The thresholds that a matcher is created with.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Memory for the caches of one matcher; 0 runs the automaton without a cache.
    pub cache_bytes: usize,
    /// Up to this many occurrences of a condition are scanned; more are sorted first.
    pub scan_occurrences: usize,
    /// Up to this many elements are tried one by one; more are looked up by value where the query permits it.
    /// The index by value is built after unsuccessful tries of this many times the document's elements.
    pub scan_elements: usize,
    /// This many candidates of a message are verified one by one; further ones are grouped into range families.
    pub verify_singly: u64,
    /// Of a generation with several shards: the bytes of the segments whose scratch space and caches are kept. Shards
    /// that were not used for longest are closed; one is always open.
    pub open_bytes: usize,
}

impl Tuning {
    /// The thresholds of the product.
    pub const fn new(cache_bytes: usize) -> Tuning {
        Tuning {
            cache_bytes,
            scan_occurrences: 16,
            scan_elements: 16,
            verify_singly: 64,
            open_bytes: OPEN_BYTES,
        }
    }

    /// Always the methods for large messages and many queries. For tests: small inputs then run the same code.
    pub const fn for_large_inputs(cache_bytes: usize) -> Tuning {
        Tuning { cache_bytes, scan_occurrences: 0, scan_elements: 0, verify_singly: 0, open_bytes: 0 }
    }
}

// Building segments.

/// The share of messages in which a condition is expected to hold as long as there is no sample: a path that
/// ends in `*`, any other path, an attribute or text that exists, one equal to a constant, one unequal to it,
/// a number that passes a range test.
pub const PRIOR_ANY: f32 = 0.6;
pub const PRIOR_PATH: f32 = 0.2;
pub const PRIOR_PRESENT: f32 = 0.3;
pub const PRIOR_EQUAL: f32 = 0.01;
pub const PRIOR_UNEQUAL: f32 = 0.4;
pub const PRIOR_RANGE: f32 = 0.4;

/// A subject compared with up to this many bounds gets a condition for each; with more, rows compare its numbers.
pub const BOUND_CONDITIONS: usize = 128;
/// Conditions with up to this many simple rows have them copied into the matcher's blocks.
pub const COPIED_ROWS: usize = 64;
/// Groups with fewer rows are not screened.
pub const SCREENED_ROWS: usize = 8;
/// The cost of screening, in tests of single rows: a column costs as much as this many rows, plus a 44th
/// of all rows of the group.
pub const SCREEN_COLUMN_ROWS: usize = 80;
pub const SCREEN_ROWS_PER_TEST: usize = 44;

/// This many segments of about the same size are merged into one.
pub const SEGMENT_FAN_IN: usize = 4;
/// Queries handed to the parsing thread at a time; fewer are not worth a thread.
pub const PARSE_CHUNK: usize = 512;
/// Parsed chunks that wait at most.
pub const PARSE_CHUNKS_AHEAD: usize = 8;

/// Messages in the sample, and the longest that is kept.
pub const SAMPLE_MESSAGES: usize = 128;
pub const SAMPLE_MESSAGE_BYTES: usize = 64 << 10;
/// A segment is measured on one message of the sample for each group of this many queries.
pub const SAMPLE_QUERIES_PER_MESSAGE: usize = 8;
/// Memory for the automaton's cache while a segment is measured.
pub const SAMPLE_CACHE_BYTES: usize = 32 << 20;

// Shards.

/// Bytes of segments that a matcher keeps open, unless set otherwise.
pub const OPEN_BYTES: usize = 4 << 30;
/// Bytes of the summary of a shard.
pub const SUMMARY_BYTES: usize = 64 << 20;
/// Memory for the automaton's cache of a routing index, for each thread.
pub const ROUTING_CACHE_BYTES: usize = 32 << 20;

// Matching: the automaton and its cache.

/// Memory for the caches of a matcher, unless set otherwise.
pub const CACHE_BYTES: usize = 64 << 20;
/// The probe cache takes at most this fraction of the cache, and so does the table of tag paths.
pub const PROBE_CACHE_FRACTION: usize = 16;
pub const TAG_PATH_FRACTION: usize = 16;
/// Buckets of an empty probe cache.
pub const PROBE_CACHE_BUCKETS: usize = 16;
/// Slots of the value cache: a power of two.
pub const VALUE_CACHE_SLOTS: usize = 1024;
/// Trie nodes are prefetched this many iterations ahead.
pub const PREFETCH_DISTANCE: usize = 8;
/// Up to this many subjects of an accept set are scanned for an attribute's label; more are binary-searched.
pub const SCAN_SUBJECTS: usize = 16;

// Matching: candidates and twigs.

/// Rows that passed are reported in batches of this size.
pub const ROW_BATCH: usize = 512;
/// Occurrences recorded for a message at most: this many, plus so many for each of its nodes. With more, its
/// candidates are verified.
pub const OCCURRENCES: usize = 1 << 18;
pub const OCCURRENCES_PER_NODE: usize = 4;
/// Words with occurrences are linked into lists in batches of this size.
pub const OCCURRENCE_BATCH: usize = 1 << 12;
/// Elements in the lists of ancestors at most: this many, plus so many times the elements of the message. With
/// more, the lists are dropped and computed again.
pub const ANCESTORS: usize = 1 << 21;
pub const ANCESTORS_PER_ELEMENT: usize = 8;
/// Occurrences that settling may read without success: for each row, and beyond that for all rows of a message. A
/// row that needs more is verified.
pub const SETTLE_ROW_READS: usize = 64;
pub const SETTLE_MESSAGE_READS: usize = 1 << 16;

/// Results that verifying a message remembers at most, of each kind: this many, plus so many for each element.
/// With more, they are dropped and computed again.
pub const MEMO: usize = 1 << 10;
pub const MEMO_PER_ELEMENT: usize = 4;
/// Of so many node tests, the nodes on the axes are counted for a whole message at once; further ones replace them.
pub const AXIS_COUNTS: usize = 8;
/// Tables of nodes by their values that are kept for a message.
pub const JOIN_TABLES: usize = 32;
/// A `//` step remembers what it tried if there are more elements below its context.
pub const MEMO_ELEMENTS_BELOW: u32 = 4;
/// Memory kept from message to message: pages of remembered predicates, entries of an index by value.
pub const MEMO_SPARE_PAGES: usize = 1 << 16;
pub const VALUE_INDEX_SPARE_ENTRIES: usize = 1 << 16;
/// How many bytes of each end of a text are hashed: texts of nested elements are long and overlap.
pub const VALUE_HASH_BYTES: usize = 32;

/// Bytes of text whose search counts as one step of a query's work, about as long as trying an element takes.
pub const BYTES_PER_STEP: usize = 16;
/// Words of twigs compiled on demand that are kept.
pub const COMPILED_TWIG_WORDS: usize = 1 << 20;

// Transforming.

/// The plans and buffers of transformations take at most this fraction of a matcher's caches.
pub const TRANSFORM_CACHE_FRACTION: usize = 2;
/// Schemas for which plans are kept, beside the plans for all messages.
pub const SCHEMAS: usize = 4;
/// Words of the table from streams to accept sets.
pub const ACCEPT_SET_WORDS: usize = 1 << 21;
/// Results (pairs, elements, values, words) cached for a message, over all operators; with more, they are
/// dropped and computed again.
pub const RESULT_CACHE_ENTRIES: usize = 1 << 22;
/// Lists of nodes that a transformation may select, one for each bound element and return path, and values that
/// it may compare. With more it fails: most lists may be empty, so no other limit bounds the work.
pub const SELECTED_LISTS: usize = 1 << 24;
/// Words of the keys by which equal outputs of a message are found; with more, outputs are not de-duplicated.
pub const DEDUPLICATION_WORDS: usize = 1 << 24;
/// Up to this many texts of an element are scanned.
pub const SCAN_TEXTS: u32 = 16;
/// Evaluation from bound elements remembers results if more than this many of them are nested.
pub const NESTED_ELEMENTS: usize = 8;

/// Compiled regular expressions of a segment are kept up to this total of their sizes (`PATTERN_SIZE_LIMIT` limits
/// one). A size of 1 takes about 100 bytes.
pub const KEPT_PATTERNS_SIZE: usize = 1 << 17;
/// Searching a byte of text counts as one step for each group of this many parts of the pattern.
pub const PATTERN_STEP_SIZE: usize = 32;
