# SPDX-License-Identifier: Apache-2.0
"""Few translation units for many small kernels: a compiler takes longer to start and read headers than for a kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from ferrule._frozen import positional
from ferrule.backends.contribution import Contribution
from ferrule.reading import is_file, read_text

_MOST = 40
"""The most sources of a unit."""
_SMALL_BYTES = 2500
"""A larger source is a unit of its own, so that all cores have work."""
_BODY = re.compile(r'^#include "(.*\.inc\.h)"', re.MULTILINE)
_MACRO = re.compile(r"^[ ]*#[ ]*define[ ]+(\w+)", re.MULTILINE)
_HEADER_AFTER_MACRO = re.compile(r'^#define.*^#include ["<](?!.*\.inc\.h)', re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"\b__attribute__\(\([^()]*(?:\([^()]*\))?[^()]*\)\)\s*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(r"[ ]*#[ ]*if")
_OTHERWISE = re.compile(r"[ ]*#[ ]*el")
_END = re.compile(r"[ ]*#[ ]*endif")
_FEATURE = re.compile(r"[ ]*#[ ]*if (?:.*&& )?FERRULE_HAS_\w+(?: &&.*)?$")
"""A condition that holds on cores with an instruction set of microcontrollers only."""
_DECLARED = re.compile(
    r"^static\b[^;={(\[]*?(\w+)[ ]*[;=(\[]"
    r"|^(?:typedef[ ]+)?(?:struct|union|enum)[ ]+(\w+)[ ]*\{"
    r"|^(?:typedef[ ]+)?enum[ ]*\{([^}]*)\}",
    re.MULTILINE,
)
"""A function or variable, a tag, or enumerators."""


@positional
class _Unit:
    names: set[str] = field(default_factory=set)
    """What the sources declare for themselves."""
    parts: list[str] = field(default_factory=list)
    """The text that includes each source."""


def units(part: Contribution) -> tuple[str, ...]:
    """Return the text of each translation unit; together, they include each source of a part once.

    The sources of a unit declare different names, and a unit forgets the macros of each. A source that defines a macro
    before it includes a header is a unit of its own, since the header may depend on the macro.
    """
    alone: list[_Unit] = []
    shared: list[_Unit] = []
    for source in part.sources:
        own = read_text(part.folder / source)
        text = _with_bodies(own, part.include_paths)
        names = _declared(text)
        if len(own) > _SMALL_BYTES or _HEADER_AFTER_MACRO.search(own):
            unit = _Unit()
            alone.append(unit)
        else:
            fitting = (unit for unit in shared if len(unit.parts) < _MOST and not unit.names & names)
            unit = next(fitting, None) or _Unit()
            shared += [] if unit.parts else [unit]
        unit.names.update(names)
        undefined = "".join(f"#undef {macro}\n" for macro in sorted(set(_MACRO.findall(text))))
        unit.parts.append(f'#include "{source}"\n{undefined}')
    return tuple("\n".join(unit.parts) for unit in [*shared, *alone])


def _with_bodies(text: str, folders: Sequence[Path]) -> str:
    """Return the text of a source and of the bodies that it includes, which have macros in place of names."""
    paths = [next(folder / name for folder in folders if is_file(folder / name)) for name in _BODY.findall(text)]
    return "\n".join([text, *(_with_bodies(read_text(path), folders) for path in paths)])


def _on_a_host(text: str) -> str:
    """Return the lines of a text but for comments, and for what depends on a feature of microcontrollers."""
    kept: list[str] = []
    skipping: list[bool] = []
    for line in _COMMENT.sub("", text).splitlines():
        if _CONDITION.match(line):
            skipping.append(bool(_FEATURE.match(line)) and "||" not in line)
        elif _OTHERWISE.match(line) and skipping:
            skipping[-1] = False
        elif _END.match(line) and skipping:
            skipping.pop()
        elif not any(skipping):
            kept.append(line)
    return "\n".join(kept)


def _declared(text: str) -> set[str]:
    names: set[str] = set()
    for name, tag, enumerators in _DECLARED.findall(_ATTRIBUTE.sub("", _on_a_host(text))):
        names |= {name, tag, *re.findall(r"\b[A-Za-z_]\w*", enumerators)}
    return names - {""}
