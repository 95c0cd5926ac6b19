# SPDX-License-Identifier: Apache-2.0
"""The C headers agree with their Python counterparts."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_cxx

from ferrule import resources
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.codes import ACTIVATION_CODES, TYPE_CODES
from ferrule.backends.dynamic.descriptors import struct_tag
from ferrule.backends.dynamic.header import descriptors, layers_header
from ferrule.backends.tensor_handle import HandleCapability, MemorySource
from ferrule.graph import DataType, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.control_flow import IfDescriptor, WhileDescriptor
from ferrule.operators.table import OPERATORS

INCLUDE = resources.root() / "include"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def test_layers_header_is_made_from_the_descriptors() -> None:
    """To fix a failure, run `python -m ferrule.backends.dynamic.header > include/ferrule/layers.h`."""
    assert (INCLUDE / "ferrule" / "layers.h").read_text() == layers_header()


def test_everything_has_a_number_of_its_own() -> None:
    layer_codes = {type_: type_.code for type_ in LayerType}
    for codes, members in ((layer_codes, LayerType), (TYPE_CODES, DataType), (ACTIVATION_CODES, Activation)):
        assert set(codes) == set(members)
        assert len(set(codes.values())) == len(codes)


def test_no_number_is_given_to_another_type() -> None:
    """Shared objects built with an older header contain these numbers."""
    names = {type_.code: type_.name for type_ in LayerType}
    first = [names[code] for code in range(1, 34)]
    assert (first[0], first[-1], sorted(first)) == ("ADD", "TRANSPOSE", first)
    assert [names[code] for code in range(34, 37)] == ["NEG", "FLOOR", "CEIL"]
    assert [names[code] for code in range(65, 72)] == [
        "PACK",
        "UNPACK",
        "SPLIT_V",
        "GATHER",
        "GATHER_ND",
        "TILE",
        "BROADCAST_TO",
    ]
    assert (names[73], names[74], names[76], names[77]) == ("FILL", "ZEROS_LIKE", "REVERSE_V2", "MIRROR_PAD")
    assert [names[code] for code in range(78, 82)] == [
        "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE",
        "SPACE_TO_BATCH_ND",
        "BATCH_TO_SPACE_ND",
    ]
    assert (names[82], names[83]) == ("EMBEDDING_LOOKUP", "DYNAMIC_UPDATE_SLICE")
    added = [names[code] for code in range(1001, 1007)]
    assert (added[0], added[-1], sorted(added)) == ("CONVERT_FP16_TO_FP32", "PRE_COMPILED", added)


def test_every_operator_has_a_struct_or_no_parameters() -> None:
    without = {IfDescriptor, WhileDescriptor}  # C has no counterpart of their graphs
    assert set(descriptors()) == {operator.descriptor for operator in OPERATORS.values()} - without
    tags = {struct_tag(descriptor) for descriptor in descriptors() if fields(descriptor)}
    assert {"ferrule_padding", *tags} == set(abi.read_header("layers.h"))


def structs() -> Iterator[tuple[str, type[ctypes.Structure]]]:
    yield from abi.STRUCTS.items()
    yield from abi.read_header("layers.h").items()


def test_every_struct_of_the_header_is_compared() -> None:
    text = "".join((INCLUDE / "ferrule" / name).read_text() for name in ("backend.h", "layers.h"))
    assert set(re.findall(r"^struct (\w+) \{", text, re.MULTILINE)) == {name for name, _ in structs()}


@pytest.mark.cc
def test_sizes_and_offsets_are_those_of_the_compiler(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    expected = {}
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "ferrule/backend.h"', "int main(void) {"]
    for name, kind in structs():
        expected[name] = str(ctypes.sizeof(kind))
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for row in kind._fields_:
            expected[f"{name}.{row[0]}"] = str(getattr(kind, row[0]).offset)
            lines.append(f'printf("{name}.{row[0]} %zu\\n", offsetof(struct {name}, {row[0]}));')
    source = tmp_path / "offsets.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    program = tmp_path / "offsets"
    subprocess.run([*host_cc, "-std=c11", f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
    printed = ran([str(program)], check=True).stdout
    assert dict(line.split() for line in printed.splitlines()) == expected


@pytest.mark.parametrize("member", ["uint8_t flags", "char letter", "int32_t four[4]", "bool (*call)(uint8_t flags)"])
def test_a_member_that_cannot_be_read_is_named(member: str) -> None:
    with pytest.raises(ValueError, match=r"include/ferrule has '(uint8_t flags|char letter|int32_t four\[4\])', whose"):
        abi._structs(f"struct ferrule_sample {{ {member}; }};")


def test_a_missing_header_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(abi, "_PLACES", [str(tmp_path / "include")])
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "include" / "backend.h"))):
        abi.read_header("backend.h")


def test_functions_are_read_with_their_parameters() -> None:
    """Also those that have a parameter which is a function itself."""
    table = abi._structs(
        "struct ferrule_sample { size_t size_bytes; /* of; this */ const char *const *(*name)(void *object);\n"
        "void (*each)(void *object, void\n(*call)(void *host, const char *text, int64_t ns), char *reason,\n"
        "size_t reason_bytes); };"
    )["ferrule_sample"]
    assert [name for name, _ in table._fields_] == ["size_bytes", *table.functions]
    name, each = (row.ctype for row in table.functions.values())
    assert (name._restype_, name._argtypes_) == (ctypes.POINTER(ctypes.c_char_p), (ctypes.c_void_p,))
    assert each._restype_ is None
    assert each._argtypes_[1]._argtypes_ == (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)
    assert [row.reports for row in table.functions.values()] == [False, True]


@pytest.mark.cc
def test_constants_are_those_of_the_compiler(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    constants = {
        "FERRULE_BACKEND_API_MAJOR": abi.API_VERSION[0],
        "FERRULE_BACKEND_API_MINOR": abi.API_VERSION[1],
        "FERRULE_OK": abi.OK,
        **{f"FERRULE_OPTION_{kind}": number for number, kind in enumerate(("BOOL", "INT", "FLOAT", "TEXT"))},
        "FERRULE_FACE_HOST": abi.FACE_HOST,
        "FERRULE_FACE_FIRMWARE": abi.FACE_FIRMWARE,
        **{f"FERRULE_{name}": getattr(abi, name) for name in vars(abi) if name.startswith("ERR_")},
        **{f"FERRULE_MEMORY_{source.name}": source.value for source in MemorySource},
        **{f"FERRULE_HANDLE_{capability.name}": capability.value for capability in HandleCapability},
    }
    asserts = "".join(f'_Static_assert((int){name} == {value}, "");\n' for name, value in constants.items())
    source = tmp_path / "constants.c"
    source.write_text(f'#include "ferrule/backend.h"\n{asserts}')
    target = str(tmp_path / "constants.o")
    subprocess.run([*host_cc, "-std=c11", f"-I{INCLUDE}", "-c", "-o", target, str(source)], check=True)


@pytest.mark.cc
@pytest.mark.parametrize("standard", ["c11", "c17", "c++11", "c++20"])
def test_the_header_compiles_alone(tmp_path: Path, standard: str) -> None:
    is_cpp = standard.startswith("c++")
    source = tmp_path / ("alone.cc" if is_cpp else "alone.c")
    source.write_text('#include "ferrule/backend.h"\nstruct ferrule_backend backend;\n')
    command = [*(require_cxx() if is_cpp else require_cc()), f"-std={standard}", *WARNINGS, f"-I{INCLUDE}"]
    command += ["-c", "-o", str(tmp_path / "alone.o"), str(source)]
    found = ran(command)
    assert found.returncode == 0, found.stderr
