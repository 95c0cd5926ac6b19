# SPDX-License-Identifier: Apache-2.0
"""Plugins of tests/support for all tests: those of tests/, of the backends in sdk/, and of examples/."""

import os
import signal

from ferrule.cache import cache_folder

# A test with an empty cache folder would otherwise wait until zig has built its runtime once more.
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_folder() / "zig"))

# Tests read what commands print: its width and colours must not come from where the tests are started.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

# A shell starts a background job with SIGINT ignored; tests send themselves this signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ("coverage_gate", "hypothesis_profile", "lanes", "not_run", "suite_order")
