# SPDX-License-Identifier: Apache-2.0
"""The allow-lists for texts of board.toml that reach a compiler or an emulator.

A board is data: no flag here names a file, a program, a plug-in or another source of flags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.errors import FerruleError

LONGEST_TITLE = 200
_FLAGS = (
    r"-mcpu=[A-Za-z0-9_.+-]+",
    r"-m(?:arch|tune|fpu|float-abi|fp16-format|tp|branch-protection)=[a-z0-9_.+-]+",
    r"-m(?:thumb|cmse|long-calls|general-regs-only|execute-only|pure-code|slow-flash-data|low-precision-[a-z-]+)",
    r"-m(?:no-)?(?:unaligned-access|long-calls|restrict-it|vectorize-with-neon-[a-z]+|fix-cortex-[a-z0-9-]+)",
    r"-f(?:no-)?(?:short-enums|signed-char|unsigned-char|strict-aliasing|strict-volatile-bitfields|wrapv|builtin)",
    r"-f(?:no-)?(?:jump-tables|inline-functions|unroll-loops|tree-vectorize|vectorize|slp-vectorize)",
    r"-f(?:no-)?(?:stack-protector|math-errno|delete-null-pointer-checks|ident)",
    r"-ffixed-r[0-9]+",
    r"-U[A-Za-z_][A-Za-z0-9_]*",
    r"-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?",
    r"-g[0-3]?",
)
"""The flags that a board may add: for the core, the ABI and the code generator, and macros of plain words."""
_FLAG = re.compile("|".join(f"(?:{each})" for each in _FLAGS), re.ASCII)
_MACHINE = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.ASCII)
_MACHINE_OPTIONS = {
    "remap": ("BRAM", "QSPI"),  # of mps3-an536 and mps3-an524: the memory at address 0
    "secure": ("on", "off"),
    "virtualization": ("on", "off"),
}
"""The options of QEMU's machines that a board may set, with their values."""


def check_flags(flags: Sequence[str], where: str) -> None:
    """Raise FerruleError for a compiler flag that is not in the list of those that a board may add."""
    for flag in flags:
        if _FLAG.fullmatch(flag) is None:
            raise FerruleError(
                f"{where}: the flag {flag!r} is not one that a board may add",
                hint="a board may choose core, FPU, ABI and code generation, and define macros of plain words; "
                "docs/boards.md lists them. Set other flags in the project's Makefile or CMakeLists.txt",
            )


def check_machine(machine: str, where: str) -> None:
    """Raise FerruleError for an argument of QEMU's `-machine` other than a name and known options."""
    name, *options = machine.split(",")
    if _MACHINE.fullmatch(name) is None:
        raise FerruleError(
            f"{where}: '{name}' is not the name of a machine of QEMU", hint="see: qemu-system-arm -machine help"
        )
    for option in options:
        key, _, value = option.partition("=")
        if value not in _MACHINE_OPTIONS.get(key, ()):
            known = ", ".join(f"{key}={'|'.join(values)}" for key, values in _MACHINE_OPTIONS.items())
            raise FerruleError(
                f"{where}: the option '{option}' is not one that a board may set", hint=f"a board may set {known}"
            )
