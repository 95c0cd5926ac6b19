# SPDX-License-Identifier: Apache-2.0
"""CpuAcc's compiled kernels for tests; FERRULE_TEST_SANITIZER=undefined or address has them checked while they run."""

from __future__ import annotations

import os
from functools import cache

from needs import require_cc, require_module, require_sanitizers

from ferrule.backends.cpu_acc.host.library import HostLibrary, load, native_library

FLAGS = {
    "": (),
    "undefined": ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
    "address": ("-fsanitize=address", "-fno-omit-frame-pointer", "-O1"),
    "thread": ("-fsanitize=thread", "-O1"),
}
"""A trap ends the process without a message, and needs no library of the compiler's."""


@cache
def library() -> HostLibrary:
    """Return the kernels, or skip."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    return load(native_library(FLAGS[os.environ.get("FERRULE_TEST_SANITIZER", "")]).file())


def sanitizer_environment(sanitizer: str) -> dict[str, str]:
    """Return the environment in which Python runs the kernels under a sanitizer."""
    return require_sanitizers(sanitizer) | {"FERRULE_TEST_SANITIZER": sanitizer}
