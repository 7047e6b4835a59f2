#!/usr/bin/env python3
"""Writes NOTICE: what a binary of Bascule contains of others, and under which licences.

  tools/notice.py            writes NOTICE
  tools/notice.py --check    exit 1 if NOTICE is not what would be written

Crates and their licences are cargo's words for rust/Cargo.lock; what is compiled in from C++ is
listed here.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADER = """Bascule
Copyright the authors of Bascule

Licensed under the Apache License, Version 2.0; see LICENSE.

A binary of Bascule contains parts of the following works.

C++ libraries:
"""
LIBRARIES = {
    "Boost (Asio, Beast)": "BSL-1.0",
    "CLI11": "BSD-3-Clause",
    "{fmt}": "MIT",
    "GCC runtime libraries": "GPL-3.0 with the GCC Runtime Library Exception",
    "JSON for Modern C++": "MIT",
    "spdlog": "MIT",
    "toml++": "MIT",
    "xxHash": "BSD-2-Clause",
}


def crates():
    """(name and version, licence) of each crate that is linked on Linux, by name."""
    run = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--quiet",
         "--filter-platform", "x86_64-unknown-linux-gnu",
         "--manifest-path", str(ROOT / "rust" / "Cargo.toml")],
        capture_output=True, text=True, check=True)
    packages = json.loads(run.stdout)["packages"]
    return sorted((f"{p['name']} {p['version']}", p["license"] or "see its source")
                  for p in packages if p["source"])


def notice():
    rows = [f"  {name}: {licence}" for name, licence in LIBRARIES.items()]
    rows += ["", "Rust crates, with what builds them:"]
    rows += [f"  {name}: {licence}" for name, licence in crates()]
    return HEADER + "\n".join(rows) + "\n"


def main():
    file, text = ROOT / "NOTICE", notice()
    if "--check" not in sys.argv:
        file.write_text(text)
        return 0
    if file.is_file() and file.read_text() == text:
        return 0
    print("NOTICE is not what rust/Cargo.lock says; run tools/notice.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
