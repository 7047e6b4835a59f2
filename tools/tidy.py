#!/usr/bin/env python3
"""clang-tidy 19 over every source of a build folder, skipping what passed before unchanged.

  tools/tidy.py [--quick] [BUILD] [PATH...]
      BUILD: a folder with compile_commands.json (build/cpu); PATH: only sources under these
      --quick: the few checks that need seconds a source; without it, all of .clang-tidy

All checks cost up to half a minute a source, most of it in headers of the system, so a source that
passed leaves a stamp in the cache: the hash of its preprocessed text with comments, its command
and the checks. The same hash is not checked again. The cache is in $BASCULE_CI_CACHE/tidy, or
~/.cache/bascule-ci/tidy.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY, CLANG = "clang-tidy-19", "clang++-19"

QUICK = ("-*,bugprone-use-after-move,google-build-using-namespace,google-explicit-constructor,"
         "misc-definitions-in-headers,misc-unused-parameters,modernize-use-nullptr,"
         "modernize-use-override,readability-braces-around-statements,readability-else-after-return,"
         "readability-function-cognitive-complexity,readability-identifier-naming")

# What a test is spared: the analyzer would mostly follow paths inside GoogleTest; an empty optional
# or a slow loop in a test fails or costs the test alone.
SPARED_IN_TESTS = ("-clang-analyzer-*,-bugprone-unchecked-optional-access,"
                   "-bugprone-implicit-widening-of-multiplication-result,"
                   "-performance-inefficient-vector-operation")


def cache_folder():
    base = os.environ.get("BASCULE_CI_CACHE") or pathlib.Path.home() / ".cache" / "bascule-ci"
    folder = pathlib.Path(base) / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def checks_of(source, quick):
    """What --checks adds to .clang-tidy for one source."""
    if quick:
        return QUICK
    return SPARED_IN_TESTS if source.stem.endswith(("_test", "_bench")) else ""


def fingerprint(entry, checks):
    """The hash of all that decides what clang-tidy says of one source; None if clang can't read it."""
    arguments = shlex.split(entry["command"])[1:]
    if "-o" in arguments:
        del arguments[arguments.index("-o") : arguments.index("-o") + 2]
    flags = [flag for flag in arguments if flag not in ("-c", entry["file"])]
    run = subprocess.run([CLANG, "-E", "-CC", "-w", *flags, entry["file"]],
                         cwd=entry["directory"], capture_output=True)
    if run.returncode:
        return None
    own_paths = re.compile(re.escape(str(ROOT)).encode())  # two clones share their stamps
    parts = [run.stdout, (ROOT / ".clang-tidy").read_bytes(),
             *(text.encode() for text in (" ".join(flags), TIDY, checks))]
    return hashlib.sha256(b"\0".join(own_paths.sub(b"", part) for part in parts)).hexdigest()


def check(entry, build, cache, quick):
    """(source, what clang-tidy found or None, whether it was run)."""
    source = pathlib.Path(entry["file"])
    checks = checks_of(source, quick)
    print_of = fingerprint(entry, checks)
    stamp = cache / print_of if print_of else None
    if stamp and stamp.exists():
        stamp.touch()
        return source, None, False
    run = subprocess.run([TIDY, "--quiet", "-p", str(build), f"--checks={checks}", str(source)],
                         capture_output=True, text=True)
    if run.returncode:
        return source, run.stdout + run.stderr, True
    if stamp:
        stamp.touch()
    return source, None, True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("build", nargs="?", default=ROOT / "build" / "cpu", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    paths = tuple(str(path.resolve()) for path in options.paths) or (str(ROOT),)
    entries = {entry["file"]: entry
               for entry in json.loads((build / "compile_commands.json").read_text())
               if entry["file"].startswith(paths) and "/build/" not in entry["file"]}
    cache = cache_folder()
    n_run = n_failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda e: check(e, build, cache, options.quick), entries.values())
        for source, found, was_run in results:
            n_run += was_run
            if found:
                n_failed += 1
                print(f"{source.relative_to(ROOT)}:\n{found}", flush=True)
    print(f"clang-tidy: {len(entries)} sources, {n_run} read now, {n_failed} with findings")
    return 1 if n_failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
