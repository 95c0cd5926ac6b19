# SPDX-License-Identifier: Apache-2.0
"""Translation units of several kernels: what may share one, and that none is left out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ferrule.backends.contribution import KERNELS, Contribution
from ferrule.backends.cpu_acc.host.library import HOST, native_library
from ferrule.backends.cpu_acc.host.units import units

BODY = "/* The kernel's source defines NAME. */\n#ifndef EXTRA\n#define EXTRA 0\n#endif\nstatic int helper(int x)\n{\n"


def part(folder: Path, **texts: str) -> Contribution:
    for name, text in texts.items():
        (folder / f"{name}.c").write_text(text, encoding="utf-8")
    (folder / "body.inc.h").write_text(BODY, encoding="utf-8")
    sources = tuple(f"{name}.c" for name in texts)
    return Contribution(name="part", folder=folder, sources=sources, include_dirs=(".",), licence="Apache-2.0")


def groups(found: tuple[str, ...]) -> list[list[str]]:
    return [re.findall(r'#include "(\w+)\.c"', text) for text in found]


def test_the_library_is_built_from_each_source_once() -> None:
    make = native_library().units
    assert make is not None
    texts = make()
    included = Counter(name for text in texts for name in re.findall(r'#include "(.*)"', text))
    assert included == Counter([*KERNELS.sources, *HOST.sources])
    assert len(texts) < len(included) / 3


@pytest.mark.parametrize(
    "text",
    [
        "static int helper(int x)\n{\n",
        "__attribute__((noinline)) static int helper(int x)\n{\n",
        'static __attribute__((section(".fast"), noinline)) int helper(int x)\n{\n',
        "static const int helper[2] = {1, 2};\n",
        "struct helper {\n    int x;\n};\n",
        "enum { OTHER = 1, helper };\n",
        "enum {\n    helper = 1,\n};\n",
        "typedef struct helper {\n    int x;\n} other;\n",
        '#define NAME run\n#include "body.inc.h"\n',
    ],
    ids=["function", "attribute", "attributes", "table", "tag", "enumerator", "lines", "type", "body"],
)
def test_equal_names_are_kept_apart(tmp_path: Path, text: str) -> None:
    found = units(part(tmp_path, one=text, two="int two(void);\n", three="static void helper(void)\n{\n"))
    assert groups(found) == [["one", "two"], ["three"]]


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("/* enum { helper } */\n", True),
        ("#if FERRULE_HAS_DSP\n#if OTHER\n#endif\nstatic void helper(void)\n{\n}\n#endif\n", True),
        ("#if defined(OTHER) && FERRULE_HAS_MVE\nenum { helper };\n#endif\n", True),
        ("#if FERRULE_HAS_DSP\n#else\nenum { helper };\n#endif\n", False),
        ("#if FERRULE_HAS_DSP || OTHER\nenum { helper };\n#endif\n", False),
        ("#if !FERRULE_HAS_DSP\nenum { helper };\n#endif\n", False),
        ("#if FERRULE_HAS_DSP\n#endif\nenum { helper };\n", False),
    ],
)
def test_names_of_microcontrollers_are_none_of_a_host(tmp_path: Path, text: str, together: bool) -> None:
    found = units(part(tmp_path, one=text, two="static void helper(void)\n{\n}\n"))
    assert len(found) == (1 if together else 2)


def test_macros_end_with_their_source(tmp_path: Path) -> None:
    (text,) = units(part(tmp_path, one='#define NAME run\n#include "body.inc.h"\n', two="#define NAME stop\n"))
    assert text == '#include "one.c"\n#undef EXTRA\n#undef NAME\n\n#include "two.c"\n#undef NAME\n'


@pytest.mark.parametrize("text", ["#define WIDE 1\n#include <math.h>\n", "/* " + "long " * 1000 + "*/\n"])
def test_a_source_that_configures_a_header_and_a_long_one_are_alone(tmp_path: Path, text: str) -> None:
    assert groups(units(part(tmp_path, one=text, two="int two(void);\n", three="int three(void);\n"))) == [
        ["two", "three"],
        ["one"],
    ]
