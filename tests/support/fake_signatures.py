# SPDX-License-Identifier: Apache-2.0
"""Generates C that checks the fakes' headers against the real ones when it is compiled with the latter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferrule.errors import unknown_name
from ferrule.nativelib import host_compiler
from ferrule.testing.cdata import CData
from ferrule.testing.compilation import FAKES
from ferrule.testing.declarations import declared, include_flags

HEADERS = {
    "zephyr": (
        *("zephyr/kernel.h", "zephyr/device.h", "zephyr/pm/device.h", "zephyr/pm/device_runtime.h"),
        *("zephyr/drivers/uart.h", "zephyr/sys/ring_buffer.h", "zephyr/irq.h"),
    ),
    "cmsis": ("Driver_USART.h", "cmsis_os2.h"),
}
"""The faked headers of each platform."""
_FUNCTION = re.compile(r"^(?!typedef|extern)(.*?)\b(\w+)\((.*)\)$")

_STRUCT = re.compile(r"^(?:typedef (?:const )?)?(struct ?\w*) \{ ([^}]*) \} ?(\w*);$", re.MULTILINE)
_POINTER = re.compile(r"(.*?) ?\(\*(\w+)\)\((.*)\)")
_PLAIN = re.compile(r"(.*?)(\w+)(?: : (\d+))?")
_STRUCT_PARAMETER = re.compile(r"(?<!const )\bstruct\b")
# A function is assigned instead of compared, because an attribute such as const makes the types differ.
_CHECKS = """\
#define CALLED(name, result, parameters, constant) \\
    static __typeof__(__builtin_choose_expr( \\
        __builtin_types_compatible_p(__typeof__(name), result constant), \\
        (result(*) constant)0, \\
        (result(*) parameters)0)) const check_##name __attribute__((unused)) = name
#define SAME(of, ...) \\
    _Static_assert(__builtin_types_compatible_p(__typeof__(of), __VA_ARGS__), #of)"""
_PRIVATE = ("fake_", "FAKE_")
"""How names begin that only the fakes have."""


def signature_check(platform: str) -> str:
    """Return a C file that compiles with a platform's real headers only if the fakes' headers agree with them.

    It compares the types of functions, the values of constants and the members of structs. What is private to the
    fakes is omitted: functions `fake_...`, constants `FAKE_...` and structs with a member `fake_...`. So are names that
    are macros in the real headers. Structs that a fake function may change may be const in the real one.
    """
    from cffi import FFI

    if platform not in HEADERS:
        raise unknown_name("platform", platform, HEADERS, where="with fakes")
    command = [*host_compiler("the host kit"), *include_flags([FAKES / platform, FAKES / "host"])]
    found = declared(command, HEADERS[platform], title=f"the fakes of {platform}")
    text = "\n".join(line for line, _ in found)
    ffi = FFI()
    ffi.cdef(text)
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        *(f"#include <{header}>" for header in HEADERS[platform]),
        "#include <stddef.h>",
        '#pragma GCC diagnostic error "-Wincompatible-pointer-types"',
        _CHECKS,
        *_functions(text),
        *_constants(text, ffi),
        *_members(text, ffi, ordered=platform == "cmsis"),
    ]
    return "\n".join(lines) + "\n"


def real_include_dirs(root: Path) -> Sequence[Path]:
    """Return the include folders of CMSIS 6 below its root."""
    return [root / "CMSIS" / part / "Include" for part in ("Driver", "RTOS2", "Core")]


def _functions(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = _FUNCTION.match(line.rstrip(";"))
        if found is not None and "{" not in line:
            result, name, parameters = found.groups()
            if name.startswith(_PRIVATE):
                continue
            constant = _STRUCT_PARAMETER.sub("const struct", parameters)
            yield f"#ifndef {name}\nCALLED({name}, {result}, ({parameters}), ({constant}));\n#endif"


def _constants(text: str, ffi: CData) -> Iterator[str]:
    enumerators = re.findall(r"\b(\w+)\s*(?:=[^,}]*)?[,}]", " ".join(re.findall(r"enum[^{;]*(\{[^}]*\})", text)))
    values = ffi.dlopen(None)
    for name in (*re.findall(r"^#define (\w+) ", text, re.MULTILINE), *enumerators):
        if not name.startswith(_PRIVATE):
            yield f'_Static_assert({name} == {getattr(values, name)}, "{name}");'


def _members(text: str, ffi: CData, *, ordered: bool) -> Iterator[str]:
    for tag, body, typedef in _STRUCT.findall(text):
        name = typedef or tag
        if "fake_" in body:
            continue
        for member, type_ in map(_member, filter(None, map(str.strip, body.split(";")))):
            place = f"(({name} *)0)->{member}"
            if not type_:
                yield f'_Static_assert(sizeof({place} + 0u) > 0u, "{name}.{member}");'
                continue
            yield f"SAME({place}, {type_});"
            if ordered:
                yield f'_Static_assert(offsetof({name}, {member}) == {ffi.offsetof(name, member)}u, "{name}.{member}");'


def _member(text: str) -> tuple[str, str]:
    """Return a member's name and type; "" as the type of a bit-field, which cannot be compared."""
    pointer = _POINTER.fullmatch(text)
    if pointer is not None:
        return pointer[2], f"{pointer[1]} (*)({pointer[3]})"
    type_, name, bits = _PLAIN.fullmatch(text).groups()  # type: ignore[union-attr]
    return name, "" if bits else type_
