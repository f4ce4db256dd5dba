//! Parses queries on a second thread while the caller adds earlier ones to a segment. The thread ends with
//! the call. A bounded queue of chunks connects both, so memory is bounded.

use crate::tuning::{PARSE_CHUNK, PARSE_CHUNKS_AHEAD};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

/// Calls `use_parsed` with every item and the result of `parse`, in order.
pub fn parse_ahead<I: Send, P: Send>(
    items: impl Iterator<Item = I> + Send,
    parse: impl Fn(&I) -> P + Sync,
    mut use_parsed: impl FnMut(&I, &P),
) {
    let mut items = items.map(|item| {
        let parsed = parse(&item);
        (item, parsed)
    });
    let mut next = move || items.by_ref().take(PARSE_CHUNK).collect::<Vec<_>>();
    let mut use_chunk = |chunk: &[(I, P)]| chunk.iter().for_each(|(item, parsed)| use_parsed(item, parsed));
    let first = next();
    use_chunk(&first);
    if first.len() < PARSE_CHUNK {
        return;
    }
    thread::scope(|scope| {
        let (parsed, chunks) = sync_channel(PARSE_CHUNKS_AHEAD);
        let (used, back) = channel();
        scope.spawn(move || {
            loop {
                let chunk = next();
                if chunk.is_empty() || parsed.send(chunk).is_err() {
                    break;
                }
                // Memory is freed by the thread that allocated it: so the allocator takes no lock.
                back.try_iter().for_each(drop);
            }
            drop(parsed);
            back.iter().for_each(drop);
        });
        for chunk in chunks {
            use_chunk(&chunk);
            // Fails once the other thread has ended; then the chunk is freed here.
            used.send(chunk).ok();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_once_and_in_order_on_either_thread() {
        for count in [
            0,
            1,
            PARSE_CHUNK - 1,
            PARSE_CHUNK,
            PARSE_CHUNK + 1,
            2 * PARSE_CHUNK,
            (PARSE_CHUNKS_AHEAD + 5) * PARSE_CHUNK + 7,
        ] {
            let mut shown = Vec::new();
            parse_ahead(0..count, |item| item * 2, |&item, &parsed| shown.push((item, parsed)));
            assert!(shown.into_iter().eq((0..count).map(|item| (item, item * 2))), "{count} items");
        }
    }
}
