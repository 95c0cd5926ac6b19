# SPDX-License-Identifier: Apache-2.0
"""The estimates of compilers: from the descriptor into documents and onto the terminal, marked as estimated."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import msgspec
from rich.console import Console
from saved_documents import inspection_document, run_document

from ferrule.backends.optimization_views import Estimate, EstimatedMemory, PreCompiledDescriptor
from ferrule.graph import Descriptor, Layer, LayerType
from ferrule.operators.elementwise.rectify import ReluDescriptor
from ferrule.report.console import print_section
from ferrule.report.estimates import EstimatePart, distinct_estimates, estimate_part, estimates_part
from ferrule.report.sections import Code

ESTIMATE = Estimate(
    source="Acme 1.0 for [large]",
    clock_hz=100_000_000,
    cycles=2_000,
    layers=(("first", 1_500), ("second", 500)),
    memories=(EstimatedMemory(name="SRAM", cycles=70, read_bytes=4_096, written_bytes=12),),
    warnings=("slow [memory]",),
)


def layer(descriptor: Descriptor, type_: LayerType = LayerType.PRE_COMPILED) -> Layer:
    return Layer("program", type_, descriptor, inputs=("x",), outputs=("y",))


def test_only_a_layer_whose_compiler_estimates_has_an_estimate() -> None:
    assert estimate_part(layer(ReluDescriptor(), LayerType.RELU)) is None
    assert estimate_part(layer(PreCompiledDescriptor(payload=1))) is None
    part = estimate_part(layer(PreCompiledDescriptor(payload=1, estimate=ESTIMATE)))
    assert part is not None
    assert (part.cycles, part.clock_hz, part.layers) == (2_000, 100_000_000, {"first": 1_500, "second": 500})
    assert part.memories[0].read_bytes == 4_096
    assert msgspec.json.decode(msgspec.json.encode(part), type=EstimatePart) == part


def test_the_terminal_marks_it_as_estimated() -> None:
    part = estimate_part(layer(PreCompiledDescriptor(payload=1, estimate=ESTIMATE)))
    output = StringIO()
    estimates = distinct_estimates([("other", None), ("program", part), ("program", part)])
    assert estimates == (("program", part),)
    print_section(estimates_part(estimates) or Code(""), Console(file=output, width=100))
    lines = [line.strip() for line in output.getvalue().splitlines()]
    assert lines[:2] == [
        "estimated by Acme 1.0 for [large]: 2,000 cycles, 0.020 ms at 100 MHz",
        "estimated cycles of program",
    ]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert cells == [["first", "1,500", "75.0%"], ["second", "500", "25.0%"], ["SRAM", "4,096", "12", "70"]]
    assert lines[-1] == "note: slow [memory]"


def test_an_estimate_without_a_clock_has_no_time() -> None:
    part = estimate_part(layer(PreCompiledDescriptor(payload=1, estimate=replace(ESTIMATE, clock_hz=0, cycles=0))))
    assert part is not None
    assert part.total == "0 cycles"
    assert part.share(500) == 500
    output = StringIO()
    print_section(estimates_part([("program", part)]) or Code(""), Console(file=output, width=100))
    assert "estimated by Acme 1.0 for [large]: 0 cycles\n" in output.getvalue()


def test_host_and_firmware_with_the_same_estimate_show_it_once() -> None:
    document = inspection_document()
    assert document.division is not None
    host, firmware = document.division.finals
    part = firmware.layers[0].estimate
    both = replace(document.division, finals=(replace(host, layers=firmware.layers, problem=""), firmware))
    assert replace(document, division=both).estimates == (("while_0", part),)
    assert replace(document, division=None).estimates == ()
    assert run_document().estimates == (("conv_2d_0", part),)
