//! The size limits of a segment: its columns refer to each other by 32-bit numbers. A builder that exceeds them is
//! refused before anything is written.

use super::Builder;
use crate::error::{Exceeded, GenerationError};

/// The greatest number; the one after it is `NONE`.
const LAST: u64 = u32::MAX as u64 - 1;

/// Refuses a segment with more of something than 32-bit numbers can address.
pub fn check_addressable(what: &str, value: usize) -> Result<(), GenerationError> {
    let value = value as u64;
    if value <= LAST {
        return Ok(());
    }
    let reason =
        format!("a segment holds at most {LAST} {what}, this one needs {value}: load in several parts");
    Err(GenerationError { code: "segment-limit", reason, exceeded: Some(Exceeded { value, limit: LAST }) })
}

impl Builder {
    /// Checks everything that was added; rows are checked as they are written.
    pub(super) fn check_sizes(&self) -> Result<(), GenerationError> {
        let tenant_bytes = self.tenants.iter().map(String::len).sum();
        let sizes = [
            ("targets", self.targets.len()),
            ("queries", self.queries.len()),
            ("bytes of tenants", tenant_bytes),
            ("bytes of names", self.labels.bytes()),
            ("nodes of linear paths", self.trie.count()),
            ("tested subjects", self.entries.len()),
            ("conditions", self.conditions.len()),
            ("parts of alternatives", self.alternatives.size()),
            ("constants", self.constants.count()),
            ("bytes of constants", self.constants.text_bytes()),
            ("words of twigs", self.twigs.words().len()),
        ];
        sizes.into_iter().try_for_each(|(what, size)| check_addressable(what, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_is_too_large_is_refused_with_both_numbers() {
        assert_eq!(check_addressable("rows", LAST as usize), Ok(()));
        let error = check_addressable("rows", 1 << 33).expect_err("too many");
        assert_eq!(error.code, "segment-limit");
        assert_eq!(error.exceeded, Some(Exceeded { value: 1 << 33, limit: LAST }));
    }
}
