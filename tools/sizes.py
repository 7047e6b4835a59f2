#!/usr/bin/env python3
"""How large the files and functions of a change are. Shows, and stops nobody.

  tools/sizes.py [BASE]    of what differs from BASE (default: where this branch left main)
  tools/sizes.py --all     of the whole tree

Functions are found by the layout clang-format gives them: a definition ends at the first closing
brace that stands as deep as it began. CONTRIBUTING.md says which sizes ask for a second look.
"""

import ast
import pathlib
import re
import subprocess
import sys

LONG_FILE, LONG_FUNCTION = 300, 40
BRACED = {".h", ".cc", ".cu", ".cuh", ".rs"}
NOT_A_FUNCTION = re.compile(
    r"^\s*((if|else|for|while|switch|do|try|catch|namespace|struct|class|enum|union|extern|match|"
    r"loop|impl|mod|trait|template|return|case|default)\b|\}|//|#|\*)"
)
NAME = re.compile(r"([~\w:]+|operator\S+)\s*(?:<[^()]*>)?\(")


def braced_functions(lines):
    """(name, first line, length) of each function in C++ or Rust text."""
    start = None  # first line of the declaration that we are in
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip() or NOT_A_FUNCTION.match(line):
            start = None
        elif start is None:
            start = i
        if start is not None and line.rstrip().endswith("{"):
            name = NAME.search(" ".join(lines[start : i + 1]))
            end = name and closing_line(lines, start, i)
            if end:
                yield name.group(1), start + 1, end - start + 1
                i = end
            start = None
        elif line.rstrip().endswith((";", "}", ":")):
            start = None
        i += 1


def closing_line(lines, start, opening):
    indent = len(lines[start]) - len(lines[start].lstrip())
    closing = re.compile(" " * indent + r"\}")
    return next((i for i in range(opening + 1, len(lines)) if closing.match(lines[i])), None)


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def functions(file):
    text = file.read_text()
    if file.suffix == ".py":
        return list(python_functions(text))
    if file.suffix in BRACED:
        return list(braced_functions(text.splitlines()))
    return []


def git(*arguments):
    run = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def changed_files(base):
    names = git("diff", "--name-only", "--diff-filter=d", base).splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    return [pathlib.Path(name) for name in names]


def median(values):
    return sorted(values)[len(values) // 2] if values else 0


def report(files):
    files = [file for file in files if file.suffix in BRACED | {".py"}]
    found = [(length, f"{file}:{line}", name)
             for file in files for name, line, length in functions(file)]
    lines = {file: len(file.read_text().splitlines()) for file in files}
    print(f"{len(files)} files, {sum(lines.values())} lines; "
          f"{len(found)} functions, median {median([f[0] for f in found])} lines")
    for file, count in sorted(lines.items(), key=lambda item: -item[1]):
        if count > LONG_FILE:
            print(f"  {count:5} lines  {file}")
    for length, where, name in sorted(found, reverse=True):
        if length > LONG_FUNCTION:
            print(f"  {length:5} lines  {name}  {where}")


def main():
    root = pathlib.Path(git("rev-parse", "--show-toplevel"))
    argument = sys.argv[1] if len(sys.argv) > 1 else None
    if argument in ("-h", "--help"):
        print(__doc__.strip())
        return
    if argument == "--all":
        names = [pathlib.Path(name) for name in git("-C", str(root), "ls-files").splitlines()]
    else:
        names = changed_files(argument or git("merge-base", "main", "HEAD"))
        if not argument:
            print(git("diff", "--shortstat", git("merge-base", "main", "HEAD")))
    report([root / name for name in names if (root / name).is_file()])


if __name__ == "__main__":
    main()
