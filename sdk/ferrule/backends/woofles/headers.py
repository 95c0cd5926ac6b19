# SPDX-License-Identifier: Apache-2.0
"""The C headers generated from Woofles's tables; `python -m ferrule.backends.woofles.headers` regenerates them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from ferrule.backends.woofles.command import UNSIGNED, WORDS, Command, Operation
from ferrule.backends.woofles.registers import TABLE, ErrorCode
from ferrule.devices import c_header

FOLDER = Path(__file__).parent / "include" / "woofles"


def command_header() -> str:
    """Return the C header that declares the structure of a command."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/** @file The commands of woofles, with their layout in memory; generated from command.py. */",
        "#ifndef WOOFLES_COMMAND_H",
        "#define WOOFLES_COMMAND_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define WOOFLES_COMMAND_WORDS {WORDS}u",
        "",
        "enum woofles_operation {",
        *(f"    WOOFLES_{operation.name} = {operation.value}," for operation in Operation),
        "};",
        "",
        "/** The error that stopped the device, in STATUS.CODE. */",
        "enum woofles_error {",
        *(f"    WOOFLES_ERROR_{code.name} = {code.value}," for code in ErrorCode),
        "};",
        "",
        "/** Addresses are bus addresses; numbers are signed. Reserved words are zero, and the last word is",
        " * the inverted sum of all words before it. */",
        "struct woofles_command {",
    ]
    lines += [f"    {'u' if field.name in UNSIGNED else ''}int32_t {field.name};" for field in fields(Command)]
    lines += [
        f"    uint32_t reserved[{WORDS - 1 - len(fields(Command))}];",
        "    uint32_t checksum;",
        "};",
        "",
        "#endif /* WOOFLES_COMMAND_H */",
        "",
    ]
    return "\n".join(lines)


HEADERS = {"registers.h": c_header(TABLE), "command.h": command_header()}
"""Text of each header, by file name."""


def main() -> None:
    """Write the headers into the driver's include folder."""
    for name, text in HEADERS.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
