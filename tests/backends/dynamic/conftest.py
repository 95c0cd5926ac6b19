# SPDX-License-Identifier: Apache-2.0
"""Shared objects compiled for tests, each once per session."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule import resources

FOLDER = Path(__file__).parent
ROOT = resources.root()

Compile = Callable[..., Path]
"""(folder, *defines, name=, source=) -> the path of the shared object with that name in the folder."""


@pytest.fixture(scope="session")
def compile_backend(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a source of this folder with macros."""
    cache = tmp_path_factory.mktemp("backends")
    known: dict[tuple[str, ...], Path] = {}

    def compile_(folder: Path, *defines: str, name: str = "Test_Variant", source: str = "variant.c") -> Path:
        key = (source, *defines)
        if key not in known:
            library = cache / f"{len(known)}.so"
            flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
            macros = [f"-D{define}" for define in defines]
            command = [*host_cc, *flags, *macros, f"-I{ROOT / 'include'}", str(FOLDER / source), "-o", str(library)]
            subprocess.run(command, check=True)
            known[key] = library
        target = folder / f"{name}_backend.so"
        shutil.copy(known[key], target)
        return target

    return compile_


@pytest.fixture(scope="session")
def examples(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the built backends of examples/dynamic_backend."""
    from needs import require_program

    make = require_program("make", "apt-get install make")
    build = tmp_path_factory.mktemp("examples") / "a folder"  # names may have spaces
    source = Path(__file__).parents[3] / "examples" / "dynamic_backend"
    flags = "-O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined"
    subprocess.run(
        [make, "-s", f"CC={shlex.join(host_cc)}", f"BUILD={build}", f"CFLAGS={flags}"], cwd=source, check=True
    )
    return build
