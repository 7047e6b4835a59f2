#!/usr/bin/env python3
"""Layers include only downwards: checks every #include and every CMake DEPENDS under src/.

The order is the table below. A layer's CMakeLists.txt may depend on what the table allows and no
more, and its files may include what its CMakeLists.txt depends on and no more. Tests may also
include what stands under tests/ and any layer that lies below theirs, through other layers too.

  tools/check_layers.py [ROOT]    prints each violation as file:line: reason; exit 1 if there is one
"""

import pathlib
import re
import sys

# layer: the layers it may include, beside itself
ALLOWED = {
    "base": set(),
    "tensor": {"base"},
    "device": {"base", "tensor"},
    "format": {"base", "tensor"},
    "text": {"base"},
    "kernels": {"base", "tensor", "device"},
    "model": {"base", "tensor", "device", "format", "kernels"},
    "engine": {"base", "tensor", "device", "text", "kernels", "model"},
    "serve": {"base", "text", "engine"},
    "apps": {"base", "tensor", "device", "format", "text", "kernels", "model", "engine", "serve"},
}

# (layer, layer below): where only a narrow door is open, the headers it consists of
DOORS = {("serve", "engine"): {"engine/engine.h", "engine/request.h"}}

SOURCES = {".h", ".cc", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LAYER_CALL = re.compile(r"\bbascule_layer\s*\(([^)]*)\)", re.DOTALL)
KEYWORDS = {"DEPENDS", "LIBRARIES"}


def parse_cmake(text):
    """(name, dependencies) of the bascule_layer call in a CMakeLists.txt, or None."""
    text = re.sub(r"#.*", "", text)
    call = LAYER_CALL.search(text)
    if not call:
        return None
    name, *words = call.group(1).split()
    depends, keyword = set(), None
    for word in words:
        if word in KEYWORDS:
            keyword = word
        elif keyword == "DEPENDS":
            depends.add(word)
    return name, depends


def check_cmake(layer, file):
    """(dependencies, violations) of one layer's CMakeLists.txt."""
    if not file.is_file():
        return set(), [f"{file}: missing; each layer has one with bascule_layer({layer} ...)"]
    parsed = parse_cmake(file.read_text())
    if parsed is None:
        return set(), [f"{file}: no bascule_layer call"]
    name, depends = parsed
    violations = []
    if name != layer:
        violations.append(f"{file}: declares layer '{name}' in the folder of '{layer}'")
    for below in sorted(depends - ALLOWED[layer]):
        violations.append(f"{file}: {layer} may not depend on {below}")
    return depends, violations


def below_all(layers):
    """These layers and all that lie below them."""
    return set(layers).union(*(below_all(ALLOWED[layer]) for layer in layers))


def is_for_tests(src, layer, header):
    """Whether a test of `layer` may include `header` although the layer itself may not."""
    if (src.parent / "tests" / header).is_file():
        return True
    below = pathlib.PurePosixPath(header).parts[0]
    return (src / header).is_file() and below in below_all(ALLOWED[layer])


def why_not(src, layer, depends, quote, header):
    """The reason why a file of `layer` may not include `header`, or None."""
    if ".." in pathlib.PurePosixPath(header).parts:
        return "no path may climb with ../; name it from src/"
    if not (src / header).is_file():
        if quote == '"':
            return "no such file under src/; ours are named from there, vendors' stand in <>"
        return None
    if quote == "<":
        return 'ours are included in "", vendors\' in <>'
    below = pathlib.PurePosixPath(header).parts[0]
    if below != layer and below not in depends:
        if below in ALLOWED[layer]:
            return f"{layer} does not list {below} in the DEPENDS of its CMakeLists.txt"
        return f"{layer} may not include {below}"
    door = DOORS.get((layer, below))
    if door and header not in door:
        return f"of {below}, {layer} may include only {', '.join(sorted(door))}"
    return None


def check_file(src, layer, depends, file):
    violations = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        include = INCLUDE.match(line)
        if not include:
            continue
        if file.stem.endswith("_test") and is_for_tests(src, layer, include.group(2)):
            continue
        reason = why_not(src, layer, depends, *include.groups())
        if reason:
            violations.append(f"{file}:{number}: {include.group(2)}: {reason}")
    return violations


def check(root):
    """All violations in the tree at `root`, each a line for a person."""
    src = pathlib.Path(root) / "src"
    violations = []
    for folder in sorted(path for path in src.iterdir() if path.is_dir()):
        layer = folder.name
        if layer not in ALLOWED:
            violations.append(f"{folder}: no layer of that name; the layers: {', '.join(ALLOWED)}")
            continue
        files = sorted(f for f in folder.rglob("*") if f.suffix in SOURCES)
        if not files:
            continue
        depends, found = check_cmake(layer, folder / "CMakeLists.txt")
        violations += found
        for file in files:
            violations += check_file(src, layer, depends, file)
    return violations


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    violations = check(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
