# SPDX-License-Identifier: Apache-2.0
"""The C hooks of the ownership check under the address and the undefined behaviour sanitizer, in a program of C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from children import ran
from needs import require_program, require_sanitizers

from ferrule.architectures import CORTEX_M
from ferrule.emulation import Violation
from ferrule.emulation.unicorn.library import SOURCE_FOLDER

HARNESS = Path(__file__).parent / "ownership_harness.c"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
OF_THE_HOST = {Violation.WRITES_CONSTANT}
"""Violations that the hooks do not find."""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gcc = require_program("gcc", "apt-get install gcc")
    require_sanitizers("address", "undefined")
    program = tmp_path_factory.mktemp("ownership") / "harness"
    sources = (str(SOURCE_FOLDER / "ownership.c"), str(SOURCE_FOLDER / "owned_layers.c"), str(HARNESS))
    flags = ("-std=c11", "-O1", "-g", *WARNINGS, *SANITIZERS, f"-I{SOURCE_FOLDER}", f"-I{CORTEX_M.model.hooks.folder}")
    subprocess.run((gcc, *flags, *sources, "-o", str(program)), check=True)
    return program


@pytest.mark.cc
@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls_stay_in_the_tables(harness: Path, seed: int) -> None:
    """With an even seed, the firmware has devices; with an odd one, `on_operator` announces the layers."""
    done = ran((harness, str(seed)))
    assert done.returncode == 0, done.stderr[-4000:]
    *rows, inferences = done.stdout.splitlines()
    found = {Violation(int(number)): int(count) for number, count in (row.split() for row in rows)}
    assert found.keys() == set(Violation) - OF_THE_HOST
    assert all(found.values()), "each violation is reached"
    assert int(inferences.split()[1]) > 0


@pytest.mark.cc
def test_an_access_beyond_a_table_is_found(harness: Path) -> None:
    done = ran((harness, "2", "beyond"))
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
