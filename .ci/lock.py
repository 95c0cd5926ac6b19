# SPDX-License-Identifier: Apache-2.0
"""Writes requirements.txt, the lock of the development environment; `--covers` asks whether it is for this Python.

The lock has the version and the SHA-256 of each package that `make tools` installs, as the package index states them,
and no addresses. A package that pip would take from a local file is refused, since others could not get it. A version
that needs a later release of this Python than its first, such as 3.11.5, is not chosen: Debian 12 has 3.11.2.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_name("requirements.txt")
BUILD = ("editables", "hatchling")
"""What the editable installation of Ferrule itself needs."""


def this_python() -> str:
    """Return what a lock depends on, apart from pyproject.toml."""
    version = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.python_implementation()} {version} on {platform.system()} {platform.machine()}"


def requirements() -> list[str]:
    """Return what `make tools` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"^DEV = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    optional = project["optional-dependencies"]
    chosen = [*extras.split(","), "docs", "testing"]
    return sorted({*project["dependencies"], *BUILD, *(each for extra in chosen for each in optional[extra])})


def locked(report: dict[str, Any]) -> str:
    """Return the text of the lock by pip's report of an installation; ValueError if a package is a local file."""
    rows = []
    for each in report["install"]:
        name, version = each["metadata"]["name"], each["metadata"]["version"]
        source = each["download_info"]
        if not source["url"].startswith("https://"):
            raise ValueError(f"{name} {version} is a file of this machine; run pip without local package folders")
        normal = re.sub(r"[-_.]+", "-", name).lower()
        rows.append(f"{normal}=={version} \\\n    --hash=sha256:{source['archive_info']['hashes']['sha256']}\n")
    return f"# SPDX-License-Identifier: Apache-2.0\n# Made by .ci/lock.py for {this_python()}.\n{''.join(sorted(rows))}"


def covers(lock: str) -> bool:
    """Return whether a lock is for this Python."""
    return f" for {this_python()}.\n" in lock


def main(arguments: list[str]) -> int:
    """Return the exit status."""
    if arguments == ["--covers"]:
        return int(not (LOCK.is_file() and covers(LOCK.read_text(encoding="utf-8"))))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        first = [*platform.python_version_tuple()[:2], "0"]
        command += ["--only-binary", ":all:", "--python-version", ".".join(first), "--target", folder]
        command += ["--report", str(report), *arguments, *requirements()]
        subprocess.run(command, check=True)
        LOCK.write_text(locked(json.loads(report.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
