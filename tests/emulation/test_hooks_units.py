# SPDX-License-Identifier: Apache-2.0
"""Parts of the C hooks alone: the lines that a UART drives, the limit of execution, returns from exceptions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from children import ran

from ferrule.emulation.unicorn import library

pytestmark = pytest.mark.cc

UNITS = Path(__file__).parent / "hooks" / "units.c"


@pytest.fixture(scope="module")
def program(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hooks, compiled with a core that executes nothing in place of unicorn's."""
    folder = library.SOURCE_FOLDER
    result = tmp_path_factory.mktemp("units") / "units"
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-I{folder}"]
    sources = [str(folder / f"{name}.c") for name in library.SOURCES]
    subprocess.run([*host_cc, *flags, str(UNITS), *sources, "-o", str(result)], check=True, timeout=120)
    return result


@pytest.mark.parametrize("name", ["lines", "limit", "exception returns"])
def test_a_piece_alone(program: Path, name: str) -> None:
    done = ran([str(program), name], timeout=60)
    assert done.returncode == 0, done.stderr
