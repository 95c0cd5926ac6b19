# SPDX-License-Identifier: Apache-2.0
"""Compares docs/acl.md with the generator of C++ classes."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from children import ran
from needs import require_acl, require_module
from pages import ROOT, blocks

from ferrule import resources
from ferrule.codegen.acl import VERSIONS, AclArtifact, AclOptions, explain_class, generate_class, supported
from ferrule.codegen.acl.table import REASONS, ROWS
from ferrule.graph import DataType, LayerType
from ferrule.testing.backends.layer_cases import layer_case

PAGE = ROOT / "docs" / "acl.md"
TEXT = PAGE.read_text(encoding="utf-8")
MOVES = {"Permute", "ReshapeLayer"}
"""Functions that are added to any layer."""
SEEDS = range(8)


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its first two lines."""
    section = TEXT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert lines is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()[2:]]


def operators() -> dict[str, list[str]]:
    rows = table("Operators")
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


def artifact() -> AclArtifact:
    """Return the class of the page's network."""
    program = next(block for block in blocks(PAGE) if block.language == "python")
    names: dict[str, Any] = {}
    exec(compile(program.text, program.place, "exec"), names)  # noqa: S102 it is the page's
    return generate_class(names["network"], target="arm-gpu-c++")


def uses(type_: LayerType, dtype: DataType, version: str) -> tuple[set[str], set[str]]:
    """Return the functions of random layers of a type, and the reasons why others are refused."""
    functions, reasons = set(), set()
    for seed in SEEDS:
        (use,) = explain_class(
            layer_case(type_, dtype, seed), target="arm-gpu-c++", options=AclOptions(version=version)
        )
        functions |= {name.removeprefix("CL") for name in use.functions}
        reasons |= {use.reason} - {""}
    return functions, reasons


def test_every_row_and_reason_has_a_line() -> None:
    assert set(operators()) == {type_.value for type_ in (*ROWS, *REASONS)}
    for type_, reason in REASONS.items():
        functions, floats, int8, note = operators()[type_.value]
        assert (functions, floats, int8, note.casefold()) == ("-", "no", "no", f"{reason}.".casefold())


@pytest.mark.parametrize("type_", ROWS, ids=lambda type_: type_.value)
def test_a_line_has_the_functions_and_types_of_its_row(type_: LayerType) -> None:
    functions, floats, int8, note = operators()[type_.value]
    whole, reasons = uses(type_, DataType.FLOAT32, VERSIONS[0])
    found = {version: uses(type_, DataType.INT8, version) for version in VERSIONS}
    quantized = set().union(*(made for made, _ in found.values()))
    assert set(functions.split(", ")) - MOVES == (whole | quantized) - MOVES
    assert floats == ("yes" if DataType.FLOAT32 in ROWS[type_].types else "no")
    if DataType.INT8 not in ROWS[type_].types:
        assert (int8, quantized) == ("no", set())
    else:
        assert int8 == ("yes" if found[VERSIONS[0]][0] else VERSIONS[1])
        reasons = reasons.union(*(refused for _, refused in found.values()))
    assert note or not reasons


def test_the_versions_are_those_of_the_generator() -> None:
    assert all(version in TEXT for version in VERSIONS)
    row = next(line for line in TEXT.splitlines() if line.startswith("`--acl-version` is the oldest"))
    assert row.endswith(f"{VERSIONS[0]}, the default, or {VERSIONS[1]}. With")


def test_the_class_is_the_generated_one() -> None:
    header = artifact().files["AclArtifact.h"].decode()
    declared = re.search(r"^class AclArtifact\n.*?^};\n", header, re.MULTILINE | re.DOTALL)
    assert declared is not None
    plain = re.sub(r" */\*.*?\*/\n", "", declared[0], flags=re.DOTALL)
    (shown,) = [block.text for block in blocks(PAGE) if block.caption == "AclArtifact.h"]
    assert [line for line in shown.splitlines() if line] == [line for line in plain.splitlines() if line]


def names_of(value: object) -> list[str]:
    return [field.name for field in fields(value)]  # type: ignore[arg-type]  # each part of the record is a dataclass


def test_the_description_has_the_fields_of_the_page() -> None:
    record = artifact().record
    listed = [name for row in table("Parameter file") for name in re.findall(r"`(\w+)`", row[0])]
    assert listed == names_of(record)
    notes = {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in table("Parameter file")}
    assert {*names_of(record.parameters[0])} == notes["`parameters`"]
    assert {*names_of(record.tensors[0])} <= notes["`tensors`"]


def test_the_refused_int8_layers_are_refused() -> None:
    """The page's reasons for SOFTMAX and LEAKY_RELU are those of the generator."""
    for seed in SEEDS:
        softmax = layer_case(LayerType.SOFTMAX, DataType.INT8, seed)
        long = softmax.info(softmax.layers[0].outputs[0]).shape[-1] >= 16
        assert bool(supported(softmax, softmax.layers[0], AclOptions(version=VERSIONS[1]))) == long
    leaky = layer_case(LayerType.LEAKY_RELU, DataType.INT8, 0)
    refused = [bool(supported(leaky, leaky.layers[0], AclOptions(version=version))) for version in VERSIONS]
    assert refused == [True, False]


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("h5py", "pip install h5py")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)  # noqa: S102 it is the page's
    assert names["project"].folder == Path("build/tiny")
    assert (tmp_path / "build" / "tiny" / "AclArtifact.cpp").is_file()
    assert names["image"].shape == (1, 8, 8, 3)


@pytest.mark.cc
def test_the_program_and_the_class_compile_for_opencl(tmp_path: Path) -> None:
    """The headers are those of OpenCL, not their replacements for NEON."""
    toolchain = require_acl()
    for file, data in artifact().files.items():
        (tmp_path / file).write_bytes(data)
    (shown,) = [block.text for block in blocks(PAGE) if block.caption == "program.cpp"]
    program = tmp_path / "program.cpp"
    program.write_text(f'{shown}#include "AclArtifact.cpp"\n', encoding="utf-8")
    flags = (*toolchain.compile_flags, f"-I{resources.root() / 'src_cpp' / 'acl'}", "-fsyntax-only")
    environment = {**os.environ, **toolchain.environment}
    argv = [*toolchain.compiler, *flags, str(program)]
    done = ran(argv, env=environment)
    assert done.returncode == 0, done.stderr
