# SPDX-License-Identifier: Apache-2.0
"""One line of disassembly for crash reports."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec


def disassemble(code: bytes, address: int) -> str | None:
    """Return the Thumb instruction at the start of `code`; None without the optional package capstone."""
    if not code or find_spec("capstone") is None:
        return None
    capstone = import_module("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    first = next(decoder.disasm_lite(code, address, 1), None)
    return f"{first[2]} {first[3]}".strip() if first else None
