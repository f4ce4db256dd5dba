//! `tests/cases/*.toml`.

use std::path::{Path, PathBuf};

use tamis::query::Namespaces;
use toml::{Table, Value};

/// A message and what queries say of it.
pub struct Case {
    pub name: String,
    pub xml: String,
    pub namespaces: Namespaces,
    pub queries: Vec<(String, bool)>,
}

/// The cases of all files.
pub fn behaviour() -> Vec<Case> {
    let mut files: Vec<PathBuf> = folder().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        for case in tables(&read(&file), "case") {
            let bindings = case.get("namespaces").and_then(Value::as_table);
            let bindings = bindings.into_iter().flatten();
            let holding = strings(&case["true"]).into_iter().map(|query| (query, true));
            let failing = strings(&case["false"]).into_iter().map(|query| (query, false));
            cases.push(Case {
                name: format!("{}: {}", file.file_stem().unwrap().display(), string(&case["name"])),
                xml: string(&case["xml"]),
                namespaces: super::namespaces(
                    bindings.map(|(prefix, uri)| (prefix.as_str(), uri.as_str().unwrap())),
                ),
                queries: holding.chain(failing).collect(),
            });
        }
    }
    cases
}

/// Canonical text, and spellings of that query.
pub fn same() -> Vec<(String, Vec<String>)> {
    let groups = both("canonical.toml", "transform_canonical.toml", "same");
    groups.iter().map(|group| (string(&group["canonical"]), strings(&group["queries"]))).collect()
}

/// Queries of which no two are one.
pub fn distinct() -> Vec<Vec<String>> {
    let groups = both("canonical.toml", "transform_canonical.toml", "distinct");
    groups.iter().map(|group| strings(&group["queries"])).collect()
}

/// Query, code, offset, part of the reason.
pub fn refused() -> Vec<(String, String, usize, String)> {
    let files = ["refused.toml", "transform_refused.toml"].map(|file| read(&folder().join(file)));
    let rows = files.iter().flat_map(|file| file["refused"].as_array().unwrap());
    rows.map(|row| (string(&row[0]), string(&row[1]), row[2].as_integer().unwrap() as usize, string(&row[3])))
        .collect()
}

/// The tables of filters and those of transformations.
fn both(filters: &str, transformations: &str, key: &str) -> Vec<Table> {
    [filters, transformations].iter().flat_map(|file| tables(&read(&folder().join(file)), key)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn read(file: &Path) -> Table {
    let text = std::fs::read_to_string(file).unwrap();
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn tables(file: &Table, key: &str) -> Vec<Table> {
    let list = file.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    list.into_iter().map(|value| value.as_table().unwrap().clone()).collect()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_string()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(string).collect()
}
