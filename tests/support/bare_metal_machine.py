# SPDX-License-Identifier: Apache-2.0
"""The bare-metal adapter, compiled once for all tests of a process; FERRULE_TEST_COVERAGE=1 has it counted."""

from __future__ import annotations

import os
from functools import cache

from needs import require_module, require_program

from ferrule.testing.adapter import Adapter, build_adapter
from ferrule.testing.fakes import Fakes


@cache
def compiled() -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_program("cc", "apt-get install gcc")
    return build_adapter("bare_metal", coverage=os.environ.get("FERRULE_TEST_COVERAGE") == "1")
