# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command lines of campaigns: one that draws nothing has compared nothing."""

from __future__ import annotations

from argparse import ArgumentTypeError


def amount(text: str) -> int:
    """Return a whole number above 0, for `type=` of argparse."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"'{text}', expected a whole number above 0")
    return int(text)
