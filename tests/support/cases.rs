//! `tests/cases/*.toml`.

use std::path::{Path, PathBuf};

use tamis::query::Namespaces;
use toml::{Table, Value};

/// A message, and the queries that match it or not.
pub struct Case {
    pub name: String,
    pub xml: String,
    pub namespaces: Namespaces,
    pub queries: Vec<(String, bool)>,
}

/// The cases of all files.
pub fn behaviour() -> Vec<Case> {
    let mut cases = Vec::new();
    for file in files() {
        for case in tables(&read(&file), "case") {
            let holding = strings(&case["true"]).into_iter().map(|query| (query, true));
            let failing = strings(&case["false"]).into_iter().map(|query| (query, false));
            cases.push(Case {
                name: format!("{}: {}", file.file_stem().unwrap().display(), string(&case["name"])),
                xml: string(&case["xml"]),
                namespaces: bindings(&case),
                queries: holding.chain(failing).collect(),
            });
        }
    }
    cases
}

/// A message, and the outputs of transformations.
pub struct Transform {
    pub name: String,
    pub xml: String,
    pub namespaces: Namespaces,
    /// An output, nothing, or the code of why there is none.
    pub queries: Vec<(String, Result<Option<String>, String>)>,
}

pub fn transforms() -> Vec<Transform> {
    let mut cases = Vec::new();
    for file in files() {
        for case in tables(&read(&file), "transform") {
            let pairs = |key: &str| {
                let rows = case.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
                rows.into_iter().map(|row| (string(&row[0]), string(&row[1])))
            };
            let outputs = pairs("outputs").map(|(query, output)| (query, Ok(Some(output))));
            let errors = pairs("errors").map(|(query, code)| (query, Err(code)));
            let nothing = case.get("nothing").map(strings).unwrap_or_default().into_iter();
            cases.push(Transform {
                name: format!("{}: {}", file.file_stem().unwrap().display(), string(&case["name"])),
                xml: string(&case["xml"]),
                namespaces: bindings(&case),
                queries: outputs.chain(errors).chain(nothing.map(|query| (query, Ok(None)))).collect(),
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

/// The prefix map of a case.
fn bindings(case: &Table) -> Namespaces {
    let bindings = case.get("namespaces").and_then(Value::as_table).into_iter().flatten();
    super::namespaces(bindings.map(|(prefix, uri)| (prefix.as_str(), uri.as_str().unwrap())))
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = folder().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
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
