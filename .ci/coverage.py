"""How much of the core crates their tests, those of tests/ and the fuzzing seeds run.

Prints every line that none of them runs, and lines run, lines in all and the share for each crate.
It fails if a share is below LEAST, if a line that is not run is missing from uncovered.toml, and if
a line there is run. A line is run if any instance of it is; test code does not count.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

from workspace import finish, load_toml

LEAST = 95
CORE = {"ne2000": "ne2000", "slirpkit-ipstack": "ipstack", "slirp-nat": "slirp-nat"}
FEATURES = ["ne2000/driver", "ne2000/embedded-hal", "ne2000/serde", "slirp-nat/ne2000"]
# `card` of tests/ takes a minute of 64 MiB transfers, which run no line that others do not.
TESTS = ["card", "cable", "replay", "scripted", "simulation", "seeds"]
SKIPPED = "transfers::"
HERE = pathlib.Path(__file__).parent
ROOT = HERE.resolve().parent


def cargo_test():
    command = ["cargo", "test", "--locked", "--lib", "--features", ",".join(FEATURES)]
    for package in [*CORE, "slirpkit-tests", "slirpkit-fuzz"]:
        command += ["-p", package]
    for test in TESTS:
        command += ["--test", test]
    return command


def programs(environment):
    """Builds the tests; returns their programs, each with the folder of its package."""
    command = [*cargo_test(), "--no-run", "--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            yield message["executable"], pathlib.Path(message["manifest_path"]).parent


def tool(name):
    libraries = subprocess.run(
        ["rustc", "--print", "target-libdir"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    return pathlib.Path(libraries).parent / "bin" / name


def run_tests(profiles):
    """Runs the tests; returns what they ran of the core crates, in the format of lcov."""
    shutil.rmtree(profiles, ignore_errors=True)
    environment = {
        **os.environ,
        "RUSTC_WORKSPACE_WRAPPER": str(HERE.resolve() / "instrument"),
        "LLVM_PROFILE_FILE": str(profiles.resolve() / "%m.profraw"),
        # Else small functions are compiled into their callers, which are not all instrumented.
        "CARGO_INCREMENTAL": "1",
        # The same lines each time.
        "PROPTEST_RNG_SEED": "0",
    }
    objects = []
    for program, folder in programs(environment):
        subprocess.run([program, "-q", "--skip", SKIPPED], cwd=folder, env=environment, check=True)
        objects += ["-object", program]
    merged = profiles / "all.profdata"
    raw = sorted(profiles.glob("*.profraw"))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *raw, "-o", merged], check=True)
    command = [tool("llvm-cov"), "export", "-format=lcov", "-instr-profile", merged, *objects]
    command += ["-sources", *(ROOT / folder / "src" for folder in CORE.values())]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def counts(lcov):
    """{file: {line: times}} of what lcov says."""
    found = collections.defaultdict(dict)
    lines = {}
    for record in lcov.splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            lines = found[rest]
        elif kind == "DA":
            line, times = map(int, rest.split(",")[:2])
            lines[line] = max(times, lines.get(line, 0))
    return found


def is_test(path):
    return path.name == "tests.rs" or "tests" in path.parts


def code(text):
    """The lines of a source, numbered, that are neither of its module of tests nor mere brackets."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside = inside or line == "mod tests {"
        if not inside and re.search(r"\w", line):
            yield number, line
        inside = inside and line != "}"


def measure(lcov):
    """{crate: (run, all)}, and the lines not run as {file: [(line, text)]}."""
    totals = {crate: [0, 0] for crate in CORE}
    missed = collections.defaultdict(list)
    crates = {folder: crate for crate, folder in CORE.items()}
    for name, lines in sorted(counts(lcov).items()):
        path = pathlib.Path(name).relative_to(ROOT)
        if is_test(path):
            continue
        for number, text in code((ROOT / path).read_text()):
            if number in lines:
                totals[crates[path.parts[0]]][1] += 1
                totals[crates[path.parts[0]]][0] += lines[number] > 0
                if lines[number] == 0:
                    missed[str(path)].append((number, text.strip()))
    return totals, missed


def explain(missed, reasons):
    """Each missed line as (where, text, reason or None), and the lines explained but not missed."""
    known = {}
    for path, entries in reasons.items():
        for entry in entries:
            for text in entry["lines"]:
                known.setdefault((path, text), []).append(entry["why"])
    explained = []
    for path, lines in missed.items():
        for number, text in lines:
            why = known.get((path, text), [])
            explained.append((f"{path}:{number}", text, why.pop() if why else None))
    return explained, [key for key, left in known.items() for _ in left]


def check(totals, explained, stale):
    for where, text, why in explained:
        if why is None:
            yield f"{where}: no test runs `{text}`, and .ci/uncovered.toml does not say why"
    for path, text in stale:
        yield f"{path}: `{text}` of .ci/uncovered.toml is not there, or a test runs it"
    for crate, (run, lines) in totals.items():
        if run * 100 < lines * LEAST:
            yield f"{crate}: {run} of {lines} lines are run, and {LEAST} % must be"


assert counts("SF:a\nDA:1,0\nDA:1,2\nDA:2,0\nend_of_record\n") == {"a": {1: 2, 2: 0}}
assert [n for n, _ in code("a {\n}\n#[cfg(test)]\nmod tests {\n    b\n}\nc")] == [1, 3, 7]
assert explain({"a": [(1, "x"), (9, "x")]}, {"a": [{"why": "z", "lines": ["x", "y"]}]}) == (
    [("a:1", "x", "z"), ("a:9", "x", None)], [("a", "y")]
)
assert list(check({"a": [94, 100]}, [], [])) and not list(check({"a": [95, 100]}, [], []))

target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
totals, missed = measure(run_tests(target / "coverage"))
explained, stale = explain(missed, load_toml(HERE / "uncovered.toml"))
for where, text, why in explained:
    print(f"{where}: {text}    [{why or 'not explained'}]")
for crate, (run, lines) in totals.items():
    print(f"{crate:18} {run:6} of {lines:6} lines, {run / lines:7.2%}")
finish("coverage", list(check(totals, explained, stale)))
