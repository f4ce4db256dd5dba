//! Texts, broken at random.

use super::random::Random;

/// Takes a stretch out, grafts a piece of another text, or does what else there is to do at a place: `other`
/// gets the text and the place.
pub fn mutate(
    text: &mut String,
    texts: &[String],
    graft: usize,
    random: &mut Random,
    other: impl FnOnce(&mut String, usize, &mut Random),
) {
    let start = boundary(text, random.below(text.len() + 1));
    match random.below(7) {
        0 => {
            let end = boundary(text, (start + random.below(6)).min(text.len()));
            text.replace_range(start.min(end)..end, "");
        }
        1 => {
            let from_text = random.pick(texts);
            let from = boundary(from_text, random.below(from_text.len() + 1));
            let to = boundary(from_text, (from + random.below(graft)).min(from_text.len()));
            text.insert_str(start, &from_text[from.min(to)..to]);
        }
        _ => other(text, start, random),
    }
}

/// Mutates texts and has each checked; there must be many that pass and many that do not.
pub fn check_mutated(
    texts: &[String],
    seed: u64,
    rounds: usize,
    mutate: impl Fn(&mut String, &mut Random),
    check: impl Fn(&str) -> bool,
) {
    let mut random = Random::new(seed);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..rounds {
        let mut text = random.pick(texts).clone();
        for _ in 0..=random.below(3) {
            mutate(&mut text, &mut random);
        }
        if check(&text) {
            accepted += 1;
        } else {
            refused += 1;
        }
    }
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
