# SPDX-License-Identifier: Apache-2.0
"""Planned times in inspections."""

from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from rich.console import Console
from small_networks import two_by_two

import ferrule
from ferrule.report.console import print_report
from ferrule.report.inspection import Inspection
from ferrule.timing.planned import KernelTimings

TIMINGS = KernelTimings(
    core="cortex-m4", per_instruction={"sum_s8": 2.0}, per_element={"maximum": 10.0}, per_mac=1.0, per_output=1.0
)
PLANNED = "planned time"


def printed(inspection: Inspection) -> str:
    """Return an inspection as text."""
    console = Console(file=StringIO(), width=300)
    print_report(inspection, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.fixture
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.timing.planned.kernel_timings", lambda core: TIMINGS)


@pytest.mark.usefixtures("_table")
def test_an_inspection_states_the_planned_time_of_the_model_and_of_each_kernel() -> None:
    inspection = ferrule.inspect(two_by_two(), board="mps2-an386", kernels=True)
    assert inspection.planned is not None
    assert inspection.kernels is not None
    chosen = {layer.layer: kernel for layer in inspection.kernels for kernel in layer.kernels if kernel.chosen}
    instructions = chosen["sum"].instructions
    assert instructions is not None
    assert chosen["sum"].cycles == 2 * instructions
    assert chosen["largest"].cycles == 60, "six elements"
    assert chosen["largest"].milliseconds == pytest.approx(60 / 25_000)
    assert inspection.planned.cycles == 2 * instructions + 60
    assert f"{inspection.planned.cycles:,} cycles at 25 MHz" in printed(inspection)
    document = msgspec.json.decode(msgspec.json.encode(inspection), type=Inspection)
    assert document.planned == inspection.planned


def test_a_core_without_a_table_has_no_planned_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.timing.planned.kernel_timings", lambda core: None)
    inspection = ferrule.inspect(two_by_two(), board="mps2-an386", kernels=True)
    assert inspection.planned is None
    assert PLANNED not in printed(inspection)
    assert "cycles" not in printed(inspection)
