//! How long reading takes: `cargo run --release --example read -- FOLDER` reads every file of a
//! folder again and again and prints microseconds a document, the median and the best pass.

use std::time::Instant;

use tamis::document::{Document, Limits, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: read FOLDER [PASSES]")?;
    let passes: usize = std::env::args().nth(2).map_or(Ok(200), |n| n.parse())?;
    let mut messages = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        messages.push(std::fs::read(entry?.path())?);
    }
    let (mut reader, mut document, limits) =
        (Reader::new(), Document::default(), Limits { internal_subset: true, ..Limits::default() });
    let (mut elements, mut attributes, mut texts, mut refused) = (0, 0, 0, 0);
    for message in &messages {
        match reader.read(message, &limits, &mut document) {
            Ok(()) => {
                elements += document.elements.len();
                attributes += document.attributes.len();
                texts += document.texts.len();
            }
            Err(error) => {
                eprintln!("{error}");
                refused += 1;
            }
        }
    }
    let mut times: Vec<f64> = (0..passes)
        .map(|_| {
            let start = Instant::now();
            for message in &messages {
                let _ = reader.read(message, &limits, &mut document);
            }
            start.elapsed().as_secs_f64() * 1e6 / messages.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let stats = reader.vocabulary().stats();
    println!(
        "{} documents, {refused} refused, {elements} elements, {attributes} attributes, {texts} texts",
        messages.len()
    );
    println!("{} names, {} tag paths, {} bytes of vocabulary", stats.names, stats.tag_paths, stats.memory);
    println!("{:.2} us a document (median), {:.2} (best)", times[times.len() / 2], times[0]);
    Ok(())
}
