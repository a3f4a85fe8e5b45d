"""Links each core crate without a way into a panic, and shows the ways where there are some.

    python3 check.py [--target-dir DIR] [+TOOLCHAIN]

It fails, too, if a program links with a panic put into it on purpose, and if a public function of
a crate is not called by its program.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TARGET = "x86_64-unknown-none"
SYMBOL = "slirpkit_panic_path_reached"
# Each program, the sources of the crate it links, and its own.
PROGRAMS = {
    "ne2000": ("ne2000/src", "src/bin/ne2000.rs"),
    "ipstack": ("ipstack/src", "src/bin/ipstack"),
    "slirp_nat": ("slirp-nat/src", "src/bin/slirp_nat"),
}


class Builder:
    def __init__(self, toolchain, target_dir):
        self.cargo = ["cargo", *([toolchain] if toolchain else [])]
        self.target_dir = pathlib.Path(target_dir)

    def build(self, program, *features):
        """Builds one program; returns the errors, and whether it built."""
        command = [*self.cargo, "build", "--release", "--locked", "--target", TARGET]
        command += ["--manifest-path", HERE / "Cargo.toml", "--target-dir", self.target_dir]
        command += ["--bin", program, "--features", ",".join(features)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        errors = re.search(r"^error.*", done.stderr, re.MULTILINE | re.DOTALL)
        return errors[0] if errors else done.stderr, done.returncode == 0

    def path(self, program):
        return self.target_dir / TARGET / "release" / program


def call_graph(binary):
    """Who refers to which function from where: {callee: [(caller, address)]}."""
    listing = subprocess.run(
        ["objdump", "-d", "-C", "--no-show-raw-insn", binary],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    callers = collections.defaultdict(list)
    current = None
    for line in listing.splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            current = head[1]
        elif use := re.match(r"\s*([0-9a-f]+):.*<(.*?)>$", line):
            if (callee := re.sub(r"\+0x[0-9a-f]+$", "", use[2])) != current:
                callers[callee].append((current, use[1]))
    return callers


def ways_into_panic(binary):
    """The places outside of `core` that call something which reaches the panic handler."""
    callers = call_graph(binary)
    pending = [name for name in callers if re.search(rf"core::panicking::|rust_begin_unwind|{SYMBOL}", name)]
    reached, places = set(pending), []
    while pending:
        callee = pending.pop()
        for caller, address in callers[callee]:
            if re.match(r"<?core::|(__rustc::)?rust_begin_unwind", caller):
                if caller not in reached:
                    reached.add(caller)
                    pending.append(caller)
            else:
                places.append((caller, callee, address))
    return places


def explain(binary):
    places = ways_into_panic(binary)
    for caller, callee, address in places:
        print(f"  {caller} calls {callee}:", file=sys.stderr)
        lines = subprocess.run(
            ["addr2line", "-C", "-f", "-i", "-p", "-e", binary, f"0x{address}"],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        print("    " + lines.strip().replace("\n", "\n    "), file=sys.stderr)
    if not places:
        print("  no call found: look at the disassembly", file=sys.stderr)


def links(builder, program):
    said, built = builder.build(program)
    if built:
        return True
    if SYMBOL not in said:
        sys.exit(f"{said}\nnopanic: {program} does not build")
    print(f"nopanic: {program} can panic:", file=sys.stderr)
    said, built = builder.build(program, "report")
    if not built:
        sys.exit(f"{said}\nnopanic: {program} does not build for the report")
    explain(builder.path(program))
    return False


def notices_a_panic(builder, program):
    said, built = builder.build(program, "provoke")
    if not built and SYMBOL in said:
        return True
    print(f"{said}nopanic: {program} ought to fail for its one panic, and does not", file=sys.stderr)
    return False


def rust_files(path):
    return sorted(path.rglob("*.rs")) if path.is_dir() else [path]


def public_functions(sources):
    for path in rust_files(sources):
        if path.name == "tests.rs" or "tests" in path.relative_to(sources).parts:
            continue
        code = path.read_text().split("\n#[cfg(test)]\nmod tests {")[0]
        for match in re.finditer(r"^\s*pub (?:const )?fn (\w+)", code, re.MULTILINE):
            yield path, match[1]


def calls_all(program, sources, own):
    code = "".join(path.read_text() for path in rust_files(HERE / own))
    missing = [
        f"nopanic: {program} does not call {name} of {path.relative_to(HERE.parent.parent.resolve())}"
        for path, name in public_functions(HERE.parent.parent.resolve() / sources)
        if not re.search(rf"\b{name}\b", code)
    ]
    for line in missing:
        print(line, file=sys.stderr)
    return not missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target-dir", default="target/nopanic")
    parser.add_argument("toolchain", nargs="?")
    arguments = parser.parse_args()
    builder = Builder(arguments.toolchain, arguments.target_dir)
    results = []
    for program, (sources, own) in PROGRAMS.items():
        results.append(calls_all(program, sources, own))
        results.append(notices_a_panic(builder, program))
        results.append(links(builder, program))
        print(f"nopanic: {program}: {'fine' if all(results[-3:]) else 'failed'}", flush=True)
    sys.exit(0 if all(results) else 1)


main()
