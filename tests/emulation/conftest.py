# SPDX-License-Identifier: Apache-2.0
"""Firmwares and engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from guest import build_guest
from needs import require_module

from ferrule.boards import load_board
from ferrule.emulation import Engine, Machine, engine

Build = Callable[..., Machine]


@pytest.fixture(scope="session")
def build(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A function (program, board name) -> Machine."""
    folder = tmp_path_factory.mktemp("firmware")
    built: dict[tuple[str, str], Machine] = {}

    def function(program: str, board: str = "mps2-an386") -> Machine:
        key = (program, board)
        if key not in built:
            built[key] = build_guest(arm_gcc, program, load_board(board), folder / f"{program}-{board}.elf")
        return built[key]

    return function


@pytest.fixture
def unicorn() -> Engine:
    """The engine unicorn."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return engine("unicorn")


@pytest.fixture(params=["unicorn", "qemu"])
def either(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    if request.param == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    return engine(request.param)
