"""Licences, sources and bans of all dependencies, as deny.toml has them.

cargo-deny reads the same file; this needs nothing but cargo and Python.
"""

import re

from workspace import finish, load_toml, metadata


def licensed(expression, allowed):
    """Whether an SPDX licence expression can be met by the licences in `allowed`."""
    tokens = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))

    def either():
        met = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = both() or met
        return met

    def both():
        met = single()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = single() and met
        return met

    def single():
        token = tokens.pop(0) if tokens else ""
        if token != "(":
            return token in allowed
        met = either()
        return bool(tokens) and tokens.pop(0) == ")" and met

    return either() and not tokens


def check(packages, rules):
    allowed = set(rules["licenses"]["allow"])
    for package in packages:
        label = f"{package['name']} {package['version']}"
        if not licensed(package["license"] or "", allowed):
            yield f"{label}: licence {package['license']!r} is not allowed"
        source = package["source"]
        if source is not None and not source.startswith(("registry+", "sparse+")):
            yield f"{label}: comes from {source}, not from the registry"
    names = [package["name"] for package in packages]
    for ban in rules["bans"]["deny"]:
        if ban["crate"] in names:
            yield f"{ban['crate']}: banned, {ban['reason']}"


def duplicates(packages):
    versions = {}
    for package in packages:
        versions.setdefault(package["name"], set()).add(package["version"])
    return {name: found for name, found in versions.items() if len(found) > 1}


for expression, expected in {
    "MIT": True,
    "GPL-3.0/MIT": True,
    "(GPL-3.0 OR MIT) AND Zlib": True,
    "GPL-3.0 OR MIT AND Zlib": True,
    "GPL-3.0 AND MIT": False,
    "MIT WITH exception": False,
    "(MIT": False,
    "": False,
}.items():
    assert licensed(expression, {"MIT", "Zlib"}) == expected, expression
packages = metadata()["packages"]
for name, found in sorted(duplicates(packages).items()):
    print(f"deny: warning: {name} in several versions: {', '.join(sorted(found))}")
finish("deny", list(check(packages, load_toml("deny.toml"))))
