# SPDX-License-Identifier: Apache-2.0
"""The declarations of an object have the type and the alignment of its definition, in projects and in the C beside."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import device_networks
import misra
import pytest
import small_networks
import state_networks

from ferrule import Job, Network, generate, resources
from ferrule._frozen import frozen

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'')
_ALIGNMENT = re.compile(r"\b(?:FERRULE_ALIGNAS|_Alignas|alignas|aligned)\s*\(([^()]*)\)")
_PLACE = re.compile(r"\b(?:__attribute__\s*\(\(.*?\)\)(?!\))|FERRULE_[A-Z_]+(?:\s*\([^()]*\))?|[A-Z_]+_SECTION\b)")
_OBJECT = re.compile(
    r"(?P<type>[\w\s*(]*?[\s*(])(?P<name>\w+)(?P<extent>(?:\s*\[[^\]]*\])*)(?P<end>(?:\)\s*\([\w\s*,]*\))?)"
)
_TAG = re.compile(r"(?:struct|union|enum) \w+")


@frozen
class Declared:
    """A declaration or the definition of an object with external linkage."""

    name: str
    type: str
    extent: str
    alignment: str
    is_extern: bool
    path: str

    def agrees(self, other: Declared) -> bool:
        """Return whether both may be of one object; an array may be declared without its extent."""
        extents = {self.extent, other.extent} - {"[]"}
        return (self.type, self.alignment) == (other.type, other.alignment) and len(extents) <= 1


def statements(text: str) -> Iterator[str]:
    """Yield the text before each initial value or end of the declarations at file scope."""
    text = _LITERAL.sub("0", _DIRECTIVE.sub("", _COMMENT.sub(" ", text)))
    text = re.sub(r"\bextern 0 \{", "", text)  # extern "C"
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}" and depth > 0)
        is_body = character == "}" and "=" not in text[start:index].partition("{")[0] and ")" in text[start:index]
        if depth == 0 and (character == ";" or is_body):
            head = text[start:index].partition("=")[0]
            if "{" not in head:
                yield " ".join(head.replace("}", " ").split())
            start = index + 1


def objects(text: str, path: str = "") -> Iterator[Declared]:
    """Yield the objects with external linkage that a C file declares or defines."""
    for statement in statements(text):
        alignment = "".join(_ALIGNMENT.findall(statement))
        words = _PLACE.sub(" ", _ALIGNMENT.sub("", statement)).split()
        found = _OBJECT.fullmatch(" ".join(word for word in words if word != "extern"))
        if found is None or {"static", "typedef"} & {*words} or _TAG.fullmatch(found[0]):
            continue
        yield Declared(
            name=found["name"],
            type=" ".join(f"{found['type']}{found['end']}".split()),
            extent="".join(found["extent"].split()),
            alignment=alignment,
            is_extern="extern" in words,
            path=path,
        )


def differences(files: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the declarations that differ from another one of the same object, and the number of those compared."""
    found: dict[str, list[Declared]] = defaultdict(list)
    for path, text in files.items():
        for each in objects(text, path):
            found[each.name].append(each)
    pairs = [(one, other) for them in found.values() for one, other in combinations(them, 2) if one != other]
    return [f"{one} != {other}" for one, other in pairs if not one.agrees(other)], len(pairs)


def c_files(folder: Path) -> dict[str, str]:
    """Return the text of each C file below a folder."""
    return {str(path): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.[ch]"))}


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("FERRULE_ALIGNAS(4) extern const float x[4];", "W _Alignas(4) const float x[4] = {1, 2};", True),
        ("extern const float x[4];", "_Alignas(4) const float x[4] = {1, 2};", False),
        ("alignas(8) extern const float x[4];", "_Alignas(4) const float x[4] = {1, 2};", False),
        ("extern int x __attribute__((aligned(8)));", "int x;", False),
        ('extern int x __attribute__((weak, section(".a")));', '__attribute__((section("b"))) int x;', True),
        ("extern float x[4];", "const float x[4] = {1};", False),
        ("extern volatile struct a x;", "struct a x = {.b = {1}};", False),
        ("extern const uint32_t x[];", "const uint32_t x[3] = {0};", True),
        ("extern const uint32_t x[4];", "const uint32_t x[3] = {0};", False),
        ("extern const uint32_t x[];", "const union a x[3] = {0};", False),
        ("extern void (*const x[2])(void);", "/* { */ void (*const x[2])(void) = {a, b};", True),
        ("extern void (*const x[2])(void);", "void (*const x[2])(int) = {a, b};", False),
    ],
)
def test_what_agrees(one: str, other: str, agree: bool) -> None:
    one = f'#ifdef __cplusplus\nextern "C" {{\n#endif\n{one}\n#ifdef __cplusplus\n}}\n#endif\n'
    other = f"int f(int a);\nstatic int f(int a)\n{{\n    return a;\n}}\n{other}\n".replace("W ", "FERRULE_WEIGHTS ")
    found, compared = differences({"one.h": one, "other.c": other})
    assert (compared, found == []) == (1, agree)


def test_the_c_of_the_repository() -> None:
    root = resources.root()
    files: dict[str, str] = {}
    for folder in ("include", "src_c", "platforms", "sdk/ferrule"):
        files |= c_files(root / folder)
    found, compared = differences(files)
    assert found == []
    assert compared > 8


def _jobs() -> Iterator[tuple[str, Sequence[Callable[[], Network]], Callable[[], Job]]]:
    """Yield what has weights, states, arenas, devices and identities."""
    for platform in misra.PLATFORMS:
        yield platform, [device_networks.crossing], lambda name=platform: replace(device_networks.job(), platform=name)
    yield "state", [state_networks.constants], Job
    yield "shared arena", [small_networks.dense, state_networks.stream], lambda: Job(arena="shared")
    yield "self-test", [small_networks.two_by_two], lambda: Job(self_test=True)
    yield "library", [small_networks.two_by_two], lambda: Job(platform="library")


JOBS = {name: (networks, job) for name, networks, job in _jobs()}


@pytest.mark.parametrize("name", JOBS)
def test_the_c_of_a_project(name: str, tmp_path: Path) -> None:
    networks, job = JOBS[name]
    generate([network() for network in networks], replace(job(), board="mps2-an386", out=tmp_path))
    files = c_files(tmp_path)
    found, compared = differences(files)
    assert found == []
    assert compared > 4
    aligned = [each for text in files.values() for each in objects(text) if each.alignment]
    assert {each.name for each in aligned if each.is_extern} == {each.name for each in aligned} != set()
