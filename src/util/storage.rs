//! Bytes that are aligned for any column of numbers: in memory, or mapped from a file that is named by its content.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

pub enum Storage {
    Memory(Vec<u64>),
    Mapped(Mmap, File),
}

impl Storage {
    /// Maps a file.
    pub fn map(path: &Path) -> io::Result<Storage> {
        let file = File::open(path)?;
        // SAFETY: these files are written once under a name that is their content's hash, then only ever read or
        // unlinked; unlinking leaves a mapping valid. If another process cuts a file short, `is_whole` sees it before
        // the next batch.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Storage::Mapped(map, file))
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Storage::Memory(words) => bytemuck::cast_slice(words),
            Storage::Mapped(map, _) => map,
        }
    }

    pub fn is_mapped(&self) -> bool {
        matches!(self, Storage::Mapped(..))
    }

    /// Whether the file is as long as when it was mapped. Reading behind the end of a file kills the process.
    pub fn is_whole(&self) -> bool {
        match self {
            Storage::Memory(_) => true,
            Storage::Mapped(map, file) => file.metadata().is_ok_and(|now| now.len() == map.len() as u64),
        }
    }
}

/// The name that content has: about 0.15 ms per MB.
pub fn content_name(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_string()
}
