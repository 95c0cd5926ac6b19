# SPDX-License-Identifier: Apache-2.0
"""The bare-metal adapter, compiled once per process."""

from __future__ import annotations

from functools import cache

from coverage_gate import counted
from needs import require_cc, require_module

from ferrule.testing import Adapter, build_adapter
from ferrule.testing.fakes import Fakes


@cache
def compiled() -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    return counted(build_adapter, "bare_metal")
