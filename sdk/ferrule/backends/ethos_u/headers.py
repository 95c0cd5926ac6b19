# SPDX-License-Identifier: Apache-2.0
"""The C header generated from the table of registers; `python -m ferrule.backends.ethos_u.headers` regenerates it."""

from __future__ import annotations

from pathlib import Path

from ferrule.backends.ethos_u.registers import TABLE
from ferrule.devices import c_header

FOLDER = Path(__file__).parent / "include" / "ethos_u"
HEADERS = {"registers.h": c_header(TABLE)}
"""Text of each header, by file name."""


def main() -> None:
    """Write the headers into the driver's include folder."""
    for name, text in HEADERS.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
