# SPDX-License-Identifier: Apache-2.0
"""Parts of the C hooks alone: the lines that a UART drives, the limit of execution, returns from exceptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from children import ran

pytestmark = pytest.mark.cc

UNITS = Path(__file__).parent / "hooks" / "units.c"


@pytest.fixture(scope="module")
def program(build_hooks: Callable[..., Path]) -> Path:
    """The hooks, compiled with a core that executes nothing in place of unicorn's."""
    return build_hooks("units")


@pytest.mark.parametrize("name", ["lines", "limit", "exception returns"])
def test_a_piece_alone(program: Path, name: str) -> None:
    done = ran([str(program), name], timeout=60)
    assert done.returncode == 0, done.stderr
