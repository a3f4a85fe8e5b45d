"""The archive that a kernel unpacks as its first file system (the "newc" format of cpio)."""

import pathlib

DIRECTORY = 0o040755
PROGRAM = 0o100755


class Initrd:
    def __init__(self):
        self.archive = bytearray()
        self.directories = set()

    def add_directory(self, name):
        """With those above it."""
        if name not in self.directories and name != ".":
            self.add_directory(str(pathlib.PurePath(name).parent))
            self.directories.add(name)
            self._append(name, DIRECTORY, b"")

    def add(self, name, content):
        """A file that may be run."""
        self.add_directory(str(pathlib.PurePath(name).parent))
        self._append(name, PROGRAM, content)

    def finish(self):
        self._append("TRAILER!!!", 0, b"")
        return bytes(self.archive)

    def _append(self, name, mode, content):
        inode, owner, group, links, time = 0, 0, 0, 1, 0
        device = (0, 0, 0, 0)
        fields = (inode, mode, owner, group, links, time, len(content), *device, len(name) + 1, 0)
        header = "070701" + "".join(f"{field:08X}" for field in fields)
        for part in (f"{header}{name}\0".encode(), content):
            self.archive += part + bytes(-len(part) % 4)
