#!/usr/bin/env python3
"""Brings a QEMU and two Debian kernels here, and makes guests of the kernels; installs nothing.

    prepare.py [--suite SUITE] DIR

    DIR/SUITE/qemu   runs qemu-system-x86_64, with $QEMU_PRELOAD preloaded if that is set
    DIR/SUITE/root   what it is made of
    DIR/amd64/       kernel and initrd of a guest with the driver ne2k-pci
    DIR/i386/        the same with ne2k-pci and ne

Everything comes from the mirror in apt's own configuration. What is there already stays, but for
the initrds, which are made anew.
"""

import argparse
import concurrent.futures
import contextlib
import pathlib
import shutil
import subprocess
import tempfile

import kernel
from initrd import Initrd

HERE = pathlib.Path(__file__).parent
# The one whose QEMU has vfio-user-pci.
SUITE = "trixie-backports"
GUEST_SUITE = "bookworm"
# Debian's name of each architecture's kernel package.
KERNELS = {"amd64": "linux-image-amd64", "i386": "linux-image-686"}
MODULES = {"amd64": ["ne2k-pci"], "i386": ["ne2k-pci", "ne"]}
WRAPPER = """#!/bin/sh
root={root}
export QEMU_MODULE_DIR=$root/usr/lib/x86_64-linux-gnu/qemu
exec $root/lib64/ld-linux-x86-64.so.2 ${{QEMU_PRELOAD:+--preload "$QEMU_PRELOAD"}} \\
    --library-path $root/usr/lib/x86_64-linux-gnu $root/usr/bin/qemu-system-x86_64 \\
    -L $root/usr/share/seabios -L $root/usr/share/qemu -L $root/usr/lib/ipxe/qemu "$@"
"""


def mirror():
    """The address from which this machine has its packages."""
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    for line in listing.splitlines():
        release, uri = line.split(maxsplit=1)
        if "security" not in release:
            return uri
    raise SystemExit("apt knows no mirror")


class Apt:
    """An apt with an empty machine of its own: every dependency is missing, and nothing here changes."""

    def __init__(self, directory, suites, architectures):
        self.directory = directory
        self.archives = directory / "cache/archives"
        for folder in ("lists/partial", "cache/archives/partial", "preferences.d"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        (directory / "status").touch()
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        address = mirror()
        lines = [f"deb [signed-by={keyring}] {address} {suite} main\n" for suite in suites]
        (directory / "sources.list").write_text("".join(lines))
        (directory / "apt.conf").write_text(f"""
            Dir::State "{directory}";
            Dir::State::status "{directory}/status";
            Dir::Cache "{directory}/cache";
            Dir::Etc::sourcelist "{directory}/sources.list";
            Dir::Etc::sourceparts "/dev/null";
            Dir::Etc::preferencesparts "{directory}/preferences.d";
            APT::Architecture "{architectures[0]}";
            APT::Architectures {{ {" ".join(f'"{name}";' for name in architectures)} }};
            APT::Install-Recommends "false";
            APT::Sandbox::User "root";
            Acquire::Languages "none";
        """)
        self.run("apt-get", "-qq", "update")

    def run(self, *command):
        environment = {"APT_CONFIG": self.directory / "apt.conf", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run(
            command, cwd=self.archives, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}:\n{done.stdout}")
        return done.stdout

    def dependency(self, package):
        """The first package that `package` depends on."""
        for line in self.run("apt-cache", "depends", package).splitlines():
            if line.strip().startswith("Depends:"):
                return line.split()[-1]
        raise SystemExit(f"{package} depends on nothing")


@contextlib.contextmanager
def complete(directory):
    """A directory that gets its name once all of it is there."""
    new = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    yield new
    new.rename(directory)


def unpack(package, *arguments):
    """Has tar extract from a package."""
    contents = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    subprocess.run(["tar", "--extract", *arguments], stdin=contents.stdout, check=True)
    if contents.wait() != 0:
        raise SystemExit(f"cannot read {package}")


def make_qemu(directory, suite):
    """Unpacks QEMU of `suite` with all that it needs, its own libc among them."""
    base = suite.removesuffix("-backports")
    with complete(directory) as new, tempfile.TemporaryDirectory(dir=new) as work:
        apt = Apt(pathlib.Path(work), sorted({base, suite}), ["amd64"])
        apt.run("apt-get", "-qq", "-y", "--download-only", "-t", suite, "install", "qemu-system-x86")
        root = new / "root"
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        for package in sorted(apt.archives.glob("*.deb")):
            unpack(package, "-C", root, "--keep-directory-symlink", "--exclude=./usr/share/doc")
        wrapper = new / "qemu"
        wrapper.write_text(WRAPPER.format(root=directory / "root"))
        wrapper.chmod(0o755)


def make_guests(directory, architectures):
    """Makes a guest of each architecture."""
    with tempfile.TemporaryDirectory(dir=directory) as work:
        apt = Apt(pathlib.Path(work), [GUEST_SUITE], architectures)
        for architecture in architectures:
            image = apt.dependency(f"{KERNELS[architecture]}:{architecture}").split(":")[0]
            apt.run("apt-get", "-qq", "download", f"{image}:{architecture}", f"busybox-static:{architecture}")
            with complete(directory / architecture) as new:
                make_guest(apt.archives, architecture, new)


def make_guest(archives, architecture, directory):
    """Keeps of the packages what a guest is made of."""
    (image,) = archives.glob(f"linux-image-*_{architecture}.deb")
    (busybox,) = archives.glob(f"busybox-static_*_{architecture}.deb")
    with tempfile.TemporaryDirectory(dir=directory) as work:
        work = pathlib.Path(work)
        wanted = ["./boot/vmlinuz-*", "./lib/modules/*/kernel/drivers/net/*"]
        unpack(image, "-C", work, "--wildcards", *wanted)
        (packed,) = (work / "boot").iterdir()
        image = packed.read_bytes()
        # The 64-bit kernel can be entered without its decompressor, which takes nine seconds under
        # emulation; the 32-bit one is built without that entry.
        (directory / "kernel").write_bytes(kernel.unpack(image) if architecture == "amd64" else image)
        root = directory / "root"
        (modules,) = (work / "lib/modules").iterdir()
        kept = root / "lib/modules" / modules.name
        kept.mkdir(parents=True)
        for name, content in kernel.modules(modules, MODULES[architecture]):
            (kept / name).write_bytes(content)
        unpack(busybox, "-C", root, "./bin/busybox")


def make_initrd(directory):
    """What a guest is made of, and what of it is ours."""
    initrd = Initrd()
    for name in ("proc", "sys", "dev", "tmp", "etc"):
        initrd.add_directory(name)
    initrd.add("init", (HERE / "init").read_bytes())
    initrd.add("bin/leased", (HERE / "leased").read_bytes())
    root = directory / "root"
    for path in sorted(root.rglob("*")):
        if path.is_file():
            initrd.add(str(path.relative_to(root)), path.read_bytes())
    (directory / "initrd").write_bytes(initrd.finish())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default=SUITE, help="where QEMU comes from")
    parser.add_argument("directory", type=pathlib.Path)
    arguments = parser.parse_args()
    directory, suite = arguments.directory.resolve(), arguments.suite
    directory.mkdir(parents=True, exist_ok=True)
    missing = [name for name in KERNELS if not (directory / name).exists()]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        made = []
        if not (directory / suite).exists():
            made.append(pool.submit(make_qemu, directory / suite, suite))
        if missing:
            made.append(pool.submit(make_guests, directory, missing))
        for each in made:
            each.result()
    for name in KERNELS:
        make_initrd(directory / name)


main()
