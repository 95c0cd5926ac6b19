# SPDX-License-Identifier: Apache-2.0
"""Compares docs/operators.md with the operators themselves."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from needs import require_module
from sample_networks import samples

from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Graph, LayerType
from ferrule.operators.operator import Operands
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "operators.md"
COLUMNS = {DataType.INT8: 0, DataType.INT16: 1, DataType.FLOAT32: 2}
ORACLES = re.compile(r"^(to [\w, ]+: )?(TFLM|LiteRT|float64)")
REFUSED = re.compile(r"^(refused|-)")
LEFT_OUT = "## What TensorFlow Lite Micro has and Ferrule leaves out"
KERNEL = re.compile(r"\d+Register_([A-Z0-9_]+)Ev")
"""The mangled name of a function that registers a kernel."""
VARIANT = re.compile(r"_(INT8|INT16|INT32|FLOAT)$")
CUSTOM = ("", "SIGNAL_", "TFLM_")
"""What may stand before a custom operator's name in the name of its layer type."""


def rows() -> dict[LayerType, list[str]]:
    """Return the cells of each operator's row; the last cell holds the notes."""
    text = DOCUMENT.read_text(encoding="utf-8")
    found: dict[LayerType, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] in LayerType.__members__:
            assert LayerType[cells[0]] not in found, f"{cells[0]} has two rows"
            found[LayerType[cells[0]]] = cells[1:]
    return found


def test_every_operator_has_a_row() -> None:
    assert set(rows()) == set(OPERATORS)


def test_the_readme_counts_them_in_tens() -> None:
    (stated,) = re.findall(r"\[over (\d+) operators\]", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert int(stated) == len(set(OPERATORS) - BEYOND_TFLITE) // 10 * 10


def test_every_cell_names_its_oracle_or_refuses() -> None:
    for type_, cells in rows().items():
        for cell in cells[:3] if len(cells) == 5 else []:
            assert ORACLES.match(cell) or REFUSED.match(cell), f"{type_}: {cell}"


@pytest.mark.parametrize("graph", list(samples()), ids=lambda graph: graph.name)
def test_what_the_table_has_is_taken(graph: Graph) -> None:
    """An operator accepts the types that the table lists, and refuses the rest."""
    documented = rows()
    for layer in graph.layers:
        first = graph.info(layer.present_inputs[0]).dtype
        if first not in COLUMNS:
            continue
        cell = documented[layer.type][COLUMNS[first]]
        operands = Operands.of(graph, layer)
        if REFUSED.match(cell):
            with pytest.raises(UnsupportedError):
                OPERATORS[layer.type].check(layer.descriptor, operands)
        else:
            OPERATORS[layer.type].check(layer.descriptor, operands)


def registered() -> set[str]:
    """Return the operators of the wheel tflite-micro; a kernel for some types alone counts as its operator."""
    require_module("tflite_micro", "pip install --pre tflite-micro")
    spec = importlib.util.find_spec("tflite_micro.python.tflite_micro._runtime")
    assert spec is not None
    assert spec.origin is not None
    with Path(spec.origin).open("rb") as library:
        symbols = ELFFile(library).get_section_by_name(".dynsym").iter_symbols()
        names = {match[1] for symbol in symbols if (match := KERNEL.search(symbol.name))}
    return {name for name in names if VARIANT.sub("", name) not in names - {name}}


def left_out() -> dict[str, str]:
    """Return the reason for each operator of the section's list."""
    section = DOCUMENT.read_text(encoding="utf-8").partition(LEFT_OUT)[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for item in re.findall(r"^- (.*?)(?=\n- |\n\n|\Z)", section, re.MULTILINE | re.DOTALL):
        names, colon, reason = " ".join(item.split()).partition(": ")
        assert colon, f"'{names}' has no reason"
        for name in re.findall(r"[A-Z0-9_]+", names):
            assert name not in found, f"{name} is listed twice"
            found[name] = reason
    return found


def test_every_operator_of_tflm_has_a_row_or_a_reason() -> None:
    have, without = registered(), left_out()
    assert len(have) >= 110  # the wheel's symbols were found
    types = {type_.value for type_ in rows()}
    documented = {name for name in have if {f"{prefix}{name}" for prefix in CUSTOM} & types}
    assert have - documented == set(without)
