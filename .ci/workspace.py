"""What the checks beside this file share: the workspace as cargo sees it."""

import json
import subprocess
import sys
import tomllib


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def load_toml(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def finish(name, errors):
    for error in errors:
        print(f"{name}: {error}", file=sys.stderr)
    if errors:
        sys.exit(1)
    print(f"{name}: fine")
