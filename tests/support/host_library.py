# SPDX-License-Identifier: Apache-2.0
"""CpuAcc's compiled kernels; FERRULE_TEST_SANITIZER=undefined, address or thread compiles them with that sanitizer."""

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
"""Compiler flags by sanitizer; a trap of `undefined` ends the process silently and needs no compiler library."""


@cache
def library() -> HostLibrary:
    """Return the kernels; skip the test without cffi or a compiler."""
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()
    return load(native_library(FLAGS[os.environ.get("FERRULE_TEST_SANITIZER", "")]).file())


def sanitizer_environment(sanitizer: str) -> dict[str, str]:
    """Return the environment in which Python runs the kernels under a sanitizer."""
    return require_sanitizers(sanitizer) | {"FERRULE_TEST_SANITIZER": sanitizer}
