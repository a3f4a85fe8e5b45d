"""Who imports whom, and what the core crates declare of themselves (see ARCHITECTURE.md)."""

import pathlib
import subprocess

from workspace import finish, metadata

# Each member of the workspace, and the members it may use, tests and examples included.
ARROWS = {
    "ne2000": set(),
    "slirpkit-ipstack": set(),
    "slirp-nat": {"ne2000", "slirpkit-ipstack"},
    "host-shim": {"ne2000", "slirpkit-ipstack", "slirp-nat"},
    "slirpkit-tests": {"ne2000", "slirpkit-ipstack", "slirp-nat", "host-shim"},
    "qemu-overlay": {"ne2000", "slirpkit-ipstack", "slirp-nat", "host-shim"},
    "slirpkit-fuzz": {"ne2000", "slirpkit-ipstack", "slirp-nat", "slirpkit-tests"},
}
# The crates without std, their folders, and what else they may be built from.
CORE = {"ne2000": "ne2000", "slirpkit-ipstack": "ipstack", "slirp-nat": "slirp-nat"}
FOREIGN = {"byteorder", "heapless", "managed", "log", "defmt", "embedded-hal", "serde"}


def tree(package, edges, *arguments):
    """Names of the packages that `cargo tree` prints below `package`."""
    command = ["cargo", "tree", "--locked", "-p", package, "-e", edges, "--prefix", "none"]
    command += ["--all-features", "--target", "all", "--format", "{p}", *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[0] for line in output.splitlines() if line.strip()} - {package}


def imports(members):
    for name in sorted(members - ARROWS.keys()):
        yield f"{name} has no line in ARROWS of .ci/arrows.py"
    for name in sorted(members & ARROWS.keys()):
        for used in sorted((tree(name, "all") & members) - ARROWS[name]):
            yield f"{name} must not use {used}"


def foreign_crates():
    for name in CORE:
        for used in sorted(tree(name, "normal,build", "--depth", "1") - FOREIGN - CORE.keys()):
            yield f"{name} must not be built from {used}"


def declarations():
    wanted = ["#![no_std]", "#![forbid(unsafe_code)]", "#![deny(clippy::indexing_slicing)]"]
    for folder in CORE.values():
        lines = pathlib.Path(folder, "src/lib.rs").read_text().splitlines()
        for line in wanted:
            if line not in lines:
                yield f"{folder}/src/lib.rs lacks {line}"
        for path in pathlib.Path(folder, "src").rglob("*.rs"):
            if "extern crate alloc" in path.read_text():
                yield f"{path} asks for an allocator"


def log_shims():
    """The logging shims are copies, since defmt expands to paths of the calling crate."""
    copies = sorted(pathlib.Path(".").glob("*/src/fmt.rs"))
    if len(copies) < 2:
        yield "fewer than two copies of src/fmt.rs"
    for copy in copies[1:]:
        if copy.read_bytes() != copies[0].read_bytes():
            yield f"{copy} differs from {copies[0]}"


data = metadata()
members = {p["name"] for p in data["packages"] if p["id"] in set(data["workspace_members"])}
missing = [f"{name} is not in the workspace" for name in ARROWS if name not in members]
finish("arrows", [*missing, *imports(members), *foreign_crates(), *declarations(), *log_shims()])
