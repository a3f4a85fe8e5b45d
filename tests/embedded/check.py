"""Runs card, NAT and RingHost without an operating system: as an image under QEMU, and as Wasm
under Node. Prints what they say, and sizes.

    python3 check.py [--target-dir DIR]

It fails unless both pass, and unless the guest has seen the same frames in both.
"""

import argparse
import gzip
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
IMAGE_TARGET, WASM_TARGET = "x86_64-unknown-none", "wasm32-unknown-unknown"
QEMU = [
    "qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-m", "4", "-nodefaults", "-no-reboot",
    "-display", "none", "-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
]
# Of isa-debug-exit, for the number 0x10: see image/src/pc.rs.
QEMU_PASS = 0x10 << 1 | 1
LIMIT_SECONDS = 60
# Symbols by the crate that they are of, the first that matches.
CRATES = ["slirp_nat", "ipstack", "ne2000", "smoltcp", "slirpkit_embedded", "image", "core"]


def build(target_dir, target, *packages):
    command = ["cargo", "build", "--release", "--locked", "--target", target]
    command += ["--manifest-path", HERE / "Cargo.toml", "--target-dir", target_dir]
    subprocess.run([*command, *(f"-p{package}" for package in packages)], check=True)
    return target_dir / target / "release"


def run(name, command, wanted_status):
    """Runs and prints; returns the output, and whether it passed."""
    print(f"== {name}", flush=True)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        print((late.stdout or b"").decode(), f"embedded: {name} does not end", sep="\n")
        return "", False
    print(done.stdout, end="", flush=True)
    return done.stdout, done.returncode == wanted_status and done.stdout.endswith("PASS\n")


def frames(output):
    """The guest's lines about all frames that it sent and received."""
    return re.findall(r"^(?:sent|received) .* digest .*$", output, re.MULTILINE)


def sections(image):
    listing = subprocess.run(
        ["size", "-A", image], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return {
        name: int(size)
        for name, size in re.findall(r"^\.(text|rodata|data|bss)\s+(\d+)", listing, re.MULTILINE)
    }


def code_by_crate(image):
    """Bytes of code, each function counted to the first crate that its name has. What was inlined
    counts to where it was."""
    listing = subprocess.run(
        ["nm", "-C", "--print-size", image], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    sizes = dict.fromkeys([*CRATES, "other"], 0)
    for size, name in re.findall(r"^\w+ (\w+) [tTwW] (.*)$", listing, re.MULTILINE):
        found = [crate for crate in CRATES if re.search(rf"\b{crate}::", name)]
        first = min(found, key=lambda crate: name.index(f"{crate}::"), default="other")
        sizes[first] += int(size, 16)
    return sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target-dir", default="target/embedded", type=pathlib.Path)
    target_dir = parser.parse_args().target_dir
    image = build(target_dir, IMAGE_TARGET, "image") / "image"
    wasm = build(target_dir, WASM_TARGET, "nic", "guest")
    on_pc, pc_passed = run("x86-64 image under QEMU", [*QEMU, "-kernel", image], QEMU_PASS)
    modules = [wasm / "nic.wasm", wasm / "guest.wasm"]
    in_wasm, wasm_passed = run("Wasm under Node", ["node", HERE / "run.mjs", *modules], 0)

    print("== sizes, in bytes")
    print("image      ", *(f"{name} {size}" for name, size in sections(image).items()))
    print("code       ", *(f"{name} {size}" for name, size in code_by_crate(image).items()))
    for module in modules:
        code = module.read_bytes()
        print("wasm       ", module.name, len(code), "compressed", len(gzip.compress(code)))
    same = frames(on_pc) == frames(in_wasm) != []
    if not same:
        print("embedded: the guest has seen other frames in the image than in Wasm")
    fine = pc_passed and wasm_passed and same
    print(f"embedded: {'fine' if fine else 'failed'}")
    sys.exit(0 if fine else 1)


main()
