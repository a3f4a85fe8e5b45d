//! Replays every seed, and holds the lists of targets together.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use slirpkit_fuzz::TARGETS;

fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

fn stems(folder: &str) -> BTreeSet<String> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    entries(folder).iter().filter_map(stem).collect()
}

#[test]
fn every_target_has_a_program_and_seeds() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| String::from(*name)).collect();
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("seeds"), targets);
}

#[test]
fn every_seed_replays() {
    for (target, run) in TARGETS {
        let seeds = entries(&format!("seeds/{target}"));
        assert!(!seeds.is_empty(), "no seed for {target}");
        for seed in seeds {
            println!("{}", seed.display());
            run(&fs::read(&seed).expect("a seed can be read"));
        }
    }
}
