# SPDX-License-Identifier: Apache-2.0
"""The replacement for ferrule/port.h defines all of its functions."""

from __future__ import annotations

import re
from pathlib import Path

from ferrule.resources import root

FUNCTION = re.compile(r"^static inline ([^\n]*?\w+\([^{;]*\))\n\{", re.MULTILINE)


def functions(path: Path) -> list[str]:
    return sorted(FUNCTION.findall(path.read_text(encoding="utf-8")))


def test_it_defines_the_same_functions() -> None:
    own = functions(root() / "platforms/cmsis/include/ferrule/platform/cmsis_port.h")
    assert len(own) > 8
    assert own == functions(root() / "include/ferrule/port.h")
