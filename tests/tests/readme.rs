//! The tables of README.md name tests that exist.

#![expect(clippy::panic, reason = "a test's mistake is to stop the test")]

use std::fs;
use std::path::{Path, PathBuf};

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    let path = place(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The `file::test` names of README.md; those of `tcp/file::test` are tests of `ipstack`.
fn names(readme: &str) -> Vec<(&str, &str)> {
    readme.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect()
}

/// The file that a test is in.
fn source(file: &str) -> String {
    let places = [
        format!("tests/scripted/{file}.rs"),
        format!("tests/card/{file}.rs"),
        format!("../ipstack/src/{}.rs", file.replacen('/', "/tests/", 1)),
    ];
    read(places.iter().find(|path| place(path).exists()).unwrap_or(&places[0]))
}

#[test]
fn every_test_named_in_the_readme_exists() {
    let readme = read("README.md");
    let named: Vec<(&str, &str)> = names(&readme)
        .into_iter()
        .filter(|(file, _)| !["name", "host_shim"].contains(file))
        .collect();
    assert!(named.len() > 100, "the tables are not found: {} names", named.len());
    for (file, test) in named {
        let function = format!("fn {test}(");
        assert!(source(file).contains(&function), "{file}::{test} does not exist");
    }
}

/// In the table of RFC 9293 a row begins with the part of section 3.10.7 that it is about.
#[test]
fn tests_of_segment_arrives_cite_their_section() {
    let readme = read("README.md");
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| .")).collect();
    assert!(rows.len() > 20, "the table is not found: {} rows", rows.len());
    for row in rows {
        let section = format!("3.10.7{}", &row[2..4]);
        for (file, test) in names(row) {
            let source = source(file);
            let (before, _) = source.split_once(&format!("fn {test}(")).unwrap_or_default();
            let comment = before.rsplit("\n\n").next().unwrap_or_default();
            assert!(comment.contains(&section), "{file}::{test} does not cite {section}");
        }
    }
}
