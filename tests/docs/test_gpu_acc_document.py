# SPDX-License-Identifier: Apache-2.0
"""Compares the table of docs/gpu_acc.md with the rows of GpuAcc."""

from __future__ import annotations

from collections.abc import Mapping

from pages import ROOT

from ferrule.backends.gpu_acc.workloads.factory import WORKLOADS, Types

_ANY = 6
"""Layers with more rows have one for every type."""


def cell(types: Mapping[Types, object]) -> str:
    """Return the types of a layer as the page names them."""
    if len(types) > _ANY:
        return "any"
    return ", ".join(str(first) if first is second else f"{first} to {second}" for first, second in sorted(types))


def test_the_table_has_the_types_of_every_layer() -> None:
    lines = (ROOT / "docs" / "gpu_acc.md").read_text(encoding="utf-8").splitlines()
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    documented = [(name, types) for names, types, _ in rows for name in names.split(", ")]
    assert sorted(documented) == sorted((str(type_), cell(types)) for type_, types in WORKLOADS.items())
