"""Takes a Debian kernel package apart."""

import lzma
import re


def unpack(image):
    """The ELF file in a bzImage (Documentation/arch/x86/boot.rst: setup_sects, payload_offset)."""
    setup = (image[0x1F1] or 4) + 1
    start = setup * 512 + int.from_bytes(image[0x248:0x24C], "little")
    elf = lzma.LZMADecompressor().decompress(image[start:])
    if not elf.startswith(b"\x7fELF"):
        raise SystemExit("no ELF file in the kernel")
    return elf


def modules(directory, wanted):
    """Each module of `wanted`, and those that it needs, as name and content; and `modules.dep`."""
    paths = {path.stem.replace("-", "_"): path for path in directory.rglob("*.ko")}
    needs = {}

    def visit(name):
        if name in needs:
            return
        found = re.search(rb"\0depends=([^\0]*)", paths[name].read_bytes())
        needs[name] = [each.replace("-", "_") for each in found[1].decode().split(",") if each]
        for each in needs[name]:
            visit(each)

    def all_needed(name):
        return [item for each in needs[name] for item in (each, *all_needed(each))]

    for name in wanted:
        visit(name.replace("-", "_"))
    # Insmod takes the last one first.
    lines = []
    for name in needs:
        files = [paths[each].name for each in all_needed(name)]
        lines.append(f"{paths[name].name}: {' '.join(files)}\n")
        yield paths[name].name, paths[name].read_bytes()
    yield "modules.dep", "".join(lines).encode()
