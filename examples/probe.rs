use std::time::Instant;
use tamis::document::{Document, Limits, Reader};
use tamis::index::Index;
use tamis::matching::Matcher;
use tamis::query::{Namespaces, parse};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut docs: Vec<(String, Vec<u8>)> = if args[1].ends_with(".txt") {
        std::fs::read_to_string(&args[1])
            .unwrap()
            .lines()
            .map(|l| (String::new(), l.as_bytes().to_vec()))
            .collect()
    } else {
        std::fs::read_dir(&args[1])
            .unwrap()
            .map(|e| {
                let p = e.unwrap().path();
                (p.display().to_string(), std::fs::read(p).unwrap())
            })
            .collect()
    };
    docs.sort();
    let docs: Vec<Vec<u8>> = docs.into_iter().map(|d| d.1).collect();
    let text = std::fs::read_to_string(&args[2]).unwrap();
    let check: usize = args.get(3).map_or(0, |s| s.parse().unwrap());
    let sampled = args.get(4).is_none();
    let queries: Vec<&str> = text.lines().collect();
    let ns = Namespaces::default();
    if std::env::var("INEXACT").is_ok() {
        inexact(&queries);
        return;
    }
    let t = Instant::now();
    let mut n = 0;
    for q in &queries {
        if let Ok(q) = parse(q, &ns) {
            n += q.canonical().len();
        }
    }
    println!("parse only {:?} {n}", t.elapsed());
    let mut index = Index::new();
    if sampled {
        for d in docs.iter().step_by(4) {
            index.sample.offer("", d);
        }
    }
    let t = Instant::now();
    let refused = index.load(queries.iter().enumerate().map(|(i, q)| (i as u64, "", *q)), &ns);
    println!("load {:?} refused {}", t.elapsed(), refused.len());
    for r in refused.iter().take(5) {
        println!("{} {}", queries[r.row], r.error);
    }
    let generation = index.commit();
    let seg = &generation.parts()[0].segment;
    let v = seg.view();
    println!(
        "queries {} bytes {} per {:.1} texts {} nodes {} conds {} exact {} multi {} anchors {} slots {} program {} twig {}",
        v.queries(),
        seg.bytes().len(),
        seg.bytes().len() as f64 / v.queries() as f64,
        seg.text_bytes().len(),
        v.node_label.len(),
        v.conditions(),
        v.exact(),
        v.multi(),
        v.anchors(),
        v.slots(),
        v.program.len(),
        v.twig.len()
    );
    let limits = Limits::default();
    let mut reader = Reader::new();
    let mut doc = Document::default();
    for _ in 0..5 {
        let t = Instant::now();
        for d in &docs {
            reader.read(d, &limits, &mut doc).unwrap();
        }
        println!("read {:.2} us", t.elapsed().as_secs_f64() * 1e6 / docs.len() as f64);
    }
    let mut matcher = Matcher::new(64 << 20);
    for pass in 0..(std::env::var("PASSES").map_or(6, |s| s.parse().unwrap())) {
        let (mut m, mut c, mut ve, mut se) = (0, 0, 0, 0);
        let t = Instant::now();
        matcher.match_batch(&generation, "", docs.iter().map(|d| d.as_slice()), &limits, |r| {
            let r = r.unwrap();
            m += r.queries.len();
            c += r.work.candidates;
            se += r.work.settled;
            ve += r.work.verified;
        });
        let k = docs.len() as f64;
        println!(
            "pass {pass} {:.2} us  matches {m} ({:.0}) cand {:.0} settled {:.0} verified {:.0} cache {:?}",
            t.elapsed().as_secs_f64() * 1e6 / k,
            m as f64 / k,
            c as f64 / k,
            se as f64 / k,
            ve as f64 / k,
            matcher.cache_stats()
        );
    }
    let mut matcher = Matcher::new(64 << 20);
    matcher.match_batch(&generation, "", docs.iter().step_by(2).map(|d| d.as_slice()), &limits, |_| {});
    let t = Instant::now();
    matcher.match_batch(
        &generation,
        "",
        docs.iter().skip(1).step_by(2).map(|d| d.as_slice()),
        &limits,
        |_| {},
    );
    println!("unseen {:.2} us", t.elapsed().as_secs_f64() * 1e6 / (docs.len() / 2) as f64);
    // compare with naive
    let mut bad = 0;
    let mut trues = 0;
    let mut nfa = Matcher::new(0);
    for d in docs.iter().step_by(docs.len() / 20 + 1) {
        let mut got = Vec::new();
        matcher.match_batch(&generation, "", std::iter::once(d.as_slice()), &limits, |r| {
            got = r.unwrap().queries.clone()
        });
        let mut by_nfa = Vec::new();
        nfa.match_batch(&generation, "", std::iter::once(d.as_slice()), &limits, |r| {
            by_nfa = r.unwrap().queries.clone()
        });
        let targets: Vec<u64> = generation.targets_of(&got);
        let b: Vec<u64> = generation.targets_of(&by_nfa);
        if b != targets {
            println!("NFA differs {} {}", b.len(), targets.len());
        }
        reader.read(d, &limits, &mut doc).unwrap();
        for k in 0..check.min(queries.len()) {
            let i = (k * 7919) % queries.len();
            let q = parse(queries[i], &ns).unwrap();
            let want = tamis::naive::matches(&q, &doc, reader.vocabulary());
            trues += want as usize;
            if want != targets.binary_search(&(i as u64)).is_ok() {
                bad += 1;
                if bad < 10 {
                    println!("DIFF {} want {want}", queries[i]);
                }
            }
        }
    }
    println!("checked, {bad} differences, {trues} true");
}
#[allow(dead_code)]
pub fn inexact(queries: &[&str]) {
    let ns = Namespaces::default();
    let mut n = 0;
    for q in queries {
        let q2 = parse(q, &ns).unwrap();
        let d = tamis::query::decompose::decompose(&q2);
        if d.alternatives.iter().any(|a| !a.exact) {
            n += 1;
            if n % 997 == 1 {
                println!("inexact {q}");
            }
        }
    }
    println!("inexact {n} of {}", queries.len());
}
