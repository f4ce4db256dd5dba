//! Damaged segments. At open, a hash finds all damage. Here segments are damaged and named by the hash of what came
//! of it, as if a disk had damaged them under the mapping: the answer may be wrong, but every call returns.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use support::random::Random;
use tamis::engine::generation::Generation;
use tamis::engine::guard::guarded;
use tamis::engine::index::{Index, Subscription};
use tamis::engine::matcher::Matcher;
use tamis::engine::snapshot;
use tamis::limits::Limits;
use tamis::query::Namespaces;
use tamis::tuning::Tuning;
use tamis::util::storage::content_name;

const MESSAGES: [&str; 4] = [
    "<a><b x='1'>t</b><b x='2'><c>5</c><c>6</c></b><d><b><c>7</c></b></d></a>",
    "<a y='2'><b><b><b><c>3</c></b></b></b><e>abc</e><e>bcd</e></a>",
    "<d><c x='9'>9</c><d><d><c x='4'>t</c></d></d></d>",
    "<b><a><b><a><b><a x='1' y='2'/></b></a></b></a></b>",
];

/// A folder of this process.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tamis-damage-{}-{name}", std::process::id()))
}

/// Queries of all kinds, so that all columns of the segment are in use.
fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for number in 0..12 {
        queries.extend([
            format!("//b[@x = {number}]"),
            format!("//c[. = '{number}']/.."),
            format!("/a/b[c > {number}][@x]"),
            format!("//d[.//c >= {number} and not(b)]"),
            format!("//b[{number}]/c"),
            format!("//*[contains(., '{number}')][@x or c]"),
            format!("//a[count(b) > {number}]//c"),
            format!("//b[b[c = {number}]]//b[@x != {number}]"),
            format!("//a[@y = 2 or @x = {number}] | //d/c[@x < {number}]"),
            format!("for $v in //b where $v/c > {number} return <r>{{$v/c}}</r>"),
        ]);
    }
    queries
}

/// Writes an index of all queries to a folder; its segment.
fn written(folder: &Path) -> PathBuf {
    let queries = queries();
    let mut index = Index::new();
    let rows = queries
        .iter()
        .enumerate()
        .map(|(at, text)| Subscription { tenant: ["", "t"][at % 2], ..Subscription::new(at as u64, text) });
    assert!(index.load(rows).expect("an index").is_empty());
    snapshot::write(index.generation(), folder).expect("a snapshot");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|suffix| suffix == "segment"))
        .expect("a segment")
}

/// Puts a segment with another content into a folder, as the only one of its generation.
fn put(folder: &Path, content: &[u8], texts: &Path) {
    let name = content_name(content);
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(format!("{name}.segment")), content).expect("a segment");
    fs::copy(texts, folder.join(format!("{name}.texts"))).expect("texts");
    let manifest = format!("tamis 1\ngeneration 1\nshard\nsummary -\nsegment {name} -\nend\n");
    fs::write(folder.join("generation-1.manifest"), manifest).expect("a manifest");
}

/// Damages what is read more than once: all but the header and the counts.
fn damage(content: &mut [u8], random: &mut Random) {
    let content = &mut content[2048..];
    for _ in 0..=random.below(3) {
        let start = random.below(content.len());
        let length = [1, 4, 16, 64, 512, 4096][random.below(6)].min(content.len() - start);
        let range = &mut content[start..start + length];
        match random.below(4) {
            0 => range.fill(0),
            1 => range.fill(0xFF),
            2 => range.iter_mut().for_each(|byte| *byte = random.next() as u8),
            _ => range[0] ^= 1 << random.below(8),
        }
    }
}

/// Uses a generation in every way; the codes of what failed.
fn use_it(generation: Generation) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for tenant in ["", "t"] {
        for message in MESSAGES {
            let mut matcher = Matcher::new(Tuning::new(1 << 20));
            let messages = || std::iter::once(message.as_bytes());
            let limits = Limits::default();
            let done = guarded(&generation, || {
                matcher.transform_batch(&generation, tenant, messages(), &limits, None, |outcome| {
                    let queries = outcome.map(|(matches, _)| matches.queries.clone()).unwrap_or_default();
                    generation.targets_of(&queries);
                });
            });
            codes.extend(done.err().map(|error| error.code));
            let mut matcher = Matcher::new(Tuning::for_large_inputs(0));
            let done = guarded(&generation, || {
                matcher.match_batch(&generation, tenant, messages(), &limits, |outcome| drop(outcome.err()));
            });
            codes.extend(done.err().map(|error| error.code));
        }
    }
    let mut index = Index::of(generation.clone());
    let merged = guarded(&generation, || {
        index.insert(1_000_000, "", "//z", &Namespaces::default()).expect("a query");
        index.merge().map(drop)
    });
    codes.extend(merged.and_then(|merged| merged).err().map(|error| error.code));
    codes
}

#[test]
fn with_any_damage_under_the_mapping_every_call_returns() {
    let cases = std::env::var("TAMIS_DAMAGES").map_or(150, |count| count.parse().expect("a number"));
    let original = folder("original");
    let segment = written(&original);
    let (content, texts) = (fs::read(&segment).expect("a segment"), segment.with_extension("texts"));
    let (mut usable, mut panicked) = (0, 0);
    for seed in 0..cases {
        let mut damaged = content.clone();
        damage(&mut damaged, &mut Random::new(seed));
        let folder = folder(&seed.to_string());
        put(&folder, &damaged, &texts);
        let opened = guarded(&Generation::default(), || snapshot::open(&folder, None, &[]));
        let _ = fs::remove_dir_all(&folder);
        let Ok(generation) = opened.and_then(|opened| opened) else { continue };
        usable += 1;
        let (send, receive) = channel();
        let worker = thread::Builder::new()
            .stack_size(8 << 20)
            .spawn(move || send.send(use_it(generation)))
            .expect("a thread");
        match receive.recv_timeout(Duration::from_secs(300)) {
            Ok(codes) => {
                assert!(
                    codes.iter().all(|code| ["kernel-panic", "segment-damaged"].contains(code)),
                    "{codes:?}"
                );
                panicked += !codes.is_empty() as usize;
            }
            Err(RecvTimeoutError::Timeout) => panic!("seed {seed}: it takes for ever"),
            Err(RecvTimeoutError::Disconnected) => panic!("seed {seed}: {:?}", worker.join()),
        }
    }
    assert!(usable > cases / 2 && panicked > 0, "{panicked} of {usable} panicked");
    let _ = fs::remove_dir_all(&original);
}

#[test]
fn damage_another_format_and_a_cut_are_told_apart() {
    let original = folder("codes");
    let segment = written(&original);
    let (content, texts) = (fs::read(&segment).expect("a segment"), segment.with_extension("texts"));
    let code = |folder: &Path| snapshot::open(folder, None, &[]).err().map(|error| error.code);
    assert_eq!(code(&original), None);

    let mut older = content.clone();
    older[8] -= 1;
    put(&folder("older"), &older, &texts);
    assert_eq!(code(&folder("older")), Some("segment-format"));

    let opened = snapshot::open(&original, None, &[]).expect("a generation");
    assert!(opened.verify().is_ok());
    // Under the mapping, as a disk may do it. Each text is verified when it is read.
    let mut broken = fs::read(&texts).expect("texts");
    let last = broken.len() - 9;
    broken[last] ^= 1;
    fs::write(&texts, &broken).expect("texts");
    assert_eq!(opened.verify().err().map(|error| error.code), Some("segment-damaged"));
    fs::write(&texts, b"").expect("texts");
    assert_eq!(opened.check_sizes().err().map(|error| error.code), Some("segment-damaged"));
    assert_eq!(guarded(&opened, || 1).err().map(|error| error.code), Some("segment-damaged"));

    fs::write(&segment, &older).expect("a segment");
    assert_eq!(code(&original), Some("segment-damaged"));
    fs::remove_dir_all(&original).expect("a folder");
    fs::remove_dir_all(folder("older")).expect("a folder");
}
