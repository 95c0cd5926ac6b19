# SPDX-License-Identifier: Apache-2.0
"""C headers of this package as cffi reads them: structs and prototypes, without directives and inline functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'#include "(.*)"')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INLINE_FUNCTION = re.compile(r"^static inline[^{;]*\{.*?^\}$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"^#define[ ]+(\w+)[ ]+([\w()+\- *]+)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^#(?:.*\\\n)*.*$", re.MULTILINE)


def declarations(headers: Iterable[str], include_dirs: Sequence[Path]) -> str:
    """Return what `headers`, named as they are included, and the headers that they include declare.

    Numeric macros become enumerators. What stands under a condition other than the include guard is left out, and so
    are headers of the compiler and the C library, whose types cffi knows.
    """
    seen: set[str] = set()
    text = "\n".join(_with_includes(header, include_dirs, seen) for header in headers)
    for pattern, replacement in (
        (_COMMENT, ""),
        (_INLINE_FUNCTION, ""),
        (_NUMBER, r"enum { \1 = \2 };"),
        (_DIRECTIVE, ""),
    ):
        text = pattern.sub(replacement, text)
    return "\n".join(line for line in text.splitlines() if line.strip())


def _with_includes(header: str, include_dirs: Sequence[Path], seen: set[str]) -> str:
    if header in seen:
        return ""
    seen.add(header)
    path = next(folder / header for folder in include_dirs if (folder / header).is_file())
    lines = []
    depth = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        depth += line.startswith("#if")
        own = _INCLUDE.match(line)
        if depth <= 1:
            lines.append(_with_includes(own[1], include_dirs, seen) if own else line)
        depth -= line.startswith("#endif")
    return "\n".join(lines)
