//! Work done ahead of what uses it, on a thread of its own: queries are parsed while those before them
//! are built into a segment.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

/// Items handed over at a time; a thread is not worth starting for fewer.
const CHUNK: usize = 512;
/// Chunks made ahead at most, so that memory is bounded.
const AHEAD: usize = 8;

/// Shows `each` every item with what `make` makes of it, in order.
pub fn make_ahead<I: Send, M: Send>(
    items: impl Iterator<Item = I> + Send,
    make: impl Fn(&I) -> M + Sync,
    mut each: impl FnMut(&I, &M),
) {
    let mut items = items.map(|item| {
        let made = make(&item);
        (item, made)
    });
    let mut next = move || items.by_ref().take(CHUNK).collect::<Vec<_>>();
    let mut show = |chunk: &[(I, M)]| chunk.iter().for_each(|(item, made)| each(item, made));
    let first = next();
    show(&first);
    if first.len() < CHUNK {
        return;
    }
    thread::scope(|scope| {
        let (made, chunks) = sync_channel(AHEAD);
        let (used, back) = channel();
        scope.spawn(move || {
            loop {
                let chunk = next();
                if chunk.is_empty() || made.send(chunk).is_err() {
                    break;
                }
                // Memory is freed where it was allocated: the allocator's threads do not meet.
                back.try_iter().for_each(drop);
            }
            drop(made);
            back.iter().for_each(drop);
        });
        for chunk in chunks {
            show(&chunk);
            // Fails when the maker is gone, and then nobody needs to hear of it.
            used.send(chunk).ok();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_once_and_in_order_whoever_makes_it() {
        for count in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, (AHEAD + 5) * CHUNK + 7] {
            let mut shown = Vec::new();
            make_ahead(0..count, |item| item * 2, |&item, &made| shown.push((item, made)));
            assert!(shown.into_iter().eq((0..count).map(|item| (item, item * 2))), "{count} items");
        }
    }
}
