# SPDX-License-Identifier: Apache-2.0
"""The replacement for ferrule/port.h defines all of its functions but those that have defaults for every port."""

from __future__ import annotations

import re

from ferrule.resources import root

FUNCTION = re.compile(r"^static inline ([^\n]*?\w+\([^{;]*\))\n\{", re.MULTILINE)


def functions(text: str) -> list[str]:
    return sorted(FUNCTION.findall(text))


def test_it_defines_the_same_functions() -> None:
    own = root().joinpath("platforms/cmsis/include/ferrule/platform/cmsis_port.h").read_text(encoding="utf-8")
    port = root().joinpath("include/ferrule/port.h").read_text(encoding="utf-8")
    to_define, defaults = port.split("#ifndef FERRULE_PORT_HAS_CACHE")
    assert len(functions(own)) > 8
    shared = [each for each in functions(to_define) if "ferrule_port_sleep" not in each]  # threads wait in the kernel
    assert functions(own) == shared
    assert "FERRULE_PORT_HAS_CACHE" not in own
    assert len(functions(defaults)) == 3
