# SPDX-License-Identifier: Apache-2.0
"""What the file of a dynamic backend may be called."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-zA-Z0-9]+_[a-zA-Z0-9]+_backend\.so(\.[0-9]+)*")


def is_backend_name(name: str) -> bool:
    """Return whether a file name, without folder, is `<vendor>_<name>_backend.so[.<version>]`."""
    return _NAME.fullmatch(name) is not None


def resembles_backend(name: str) -> bool:
    """Return whether a file that is not called so may have been meant as one; reports mention it then."""
    lowered = name.lower()
    return "backend" in lowered or ".so" in lowered
