# SPDX-License-Identifier: Apache-2.0
"""The C hooks under sanitizers, around a core that does anything: no access leaves its memory, and every run ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from children import ran
from needs import require_sanitizers

pytestmark = pytest.mark.cc

FUZZ = Path(__file__).parent / "hooks" / "fuzz.c"
ROUNDS = 10_000
BUDGET, EXCEPTION, LOCKUP, ERROR = (1 << stop for stop in (1, 4, 6, 9))
"""Reasons to stop, of guest.h, that must all occur, so that the rounds differ."""


@pytest.fixture(scope="module")
def program(build_hooks: Callable[..., Path]) -> Path:
    """The hooks, compiled with a core in C in place of unicorn's."""
    require_sanitizers("address")
    return build_hooks("fuzz", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("seed", range(4))
def test_any_guest_is_borne(program: Path, seed: int) -> None:
    argv = [str(program), str(seed), str(ROUNDS)]
    done = ran(argv, timeout=60)
    assert done.returncode == 0, done.stderr
    wanted = BUDGET | EXCEPTION | LOCKUP | ERROR
    assert int(done.stdout, 16) & wanted == wanted
