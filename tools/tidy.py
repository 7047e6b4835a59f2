#!/usr/bin/env python3
"""clang-tidy 19 over every source of a build folder, skipping what passed before unchanged.

  tools/tidy.py [BUILD] [PATH...]    BUILD: a folder with compile_commands.json (build/cpu);
                                     PATH: only sources under these

One source costs clang-tidy up to half a minute, most of it in headers of the system, so a source
that passed leaves a stamp in the cache: the hash of its preprocessed text with comments, its
command and the settings. The same hash is not checked again. The cache is in
$BASCULE_CI_CACHE/tidy, or ~/.cache/bascule-ci/tidy. Tests are spared some checks, see below.
"""

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


def is_test(source):
    return source.stem.endswith(("_test", "_bench"))


def fingerprint(entry):
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
    spared = SPARED_IN_TESTS if is_test(pathlib.Path(entry["file"])) else ""
    parts = [run.stdout, (ROOT / ".clang-tidy").read_bytes(),
             *(text.encode() for text in (" ".join(flags), TIDY, spared))]
    return hashlib.sha256(b"\0".join(own_paths.sub(b"", part) for part in parts)).hexdigest()


def check(entry, build, cache):
    """(source, what clang-tidy found or None, whether it was run)."""
    source = pathlib.Path(entry["file"])
    print_of = fingerprint(entry)
    stamp = cache / print_of if print_of else None
    if stamp and stamp.exists():
        stamp.touch()
        return source, None, False
    spared = [f"--checks={SPARED_IN_TESTS}"] if is_test(source) else []
    run = subprocess.run([TIDY, "--quiet", "-p", str(build), *spared, str(source)],
                         capture_output=True, text=True)
    if run.returncode:
        return source, run.stdout + run.stderr, True
    if stamp:
        stamp.touch()
    return source, None, True


def main():
    if "--help" in sys.argv or "-h" in sys.argv:
        print(__doc__.strip())
        return 0
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "cpu").resolve()
    paths = [str(pathlib.Path(path).resolve()) for path in sys.argv[2:]] or [str(ROOT)]
    entries = {entry["file"]: entry
               for entry in json.loads((build / "compile_commands.json").read_text())
               if entry["file"].startswith(tuple(paths)) and "/build/" not in entry["file"]}
    cache = cache_folder()
    n_run = n_failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, found, was_run in pool.map(lambda e: check(e, build, cache), entries.values()):
            n_run += was_run
            if found:
                n_failed += 1
                print(f"{source.relative_to(ROOT)}:\n{found}", flush=True)
    print(f"clang-tidy: {len(entries)} sources, {n_run} read now, {n_failed} with findings")
    return 1 if n_failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
