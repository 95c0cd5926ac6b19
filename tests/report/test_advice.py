# SPDX-License-Identifier: Apache-2.0
"""What would help a layer that takes much longer than the best kernels known."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from needs import require_module
from rich.console import Console

import ferrule
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import ConsideredKernel, KernelCosts
from ferrule.codegen.artifact import OperatorRecord
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.report.advice import advice
from ferrule.report.console import print_report
from ferrule.report.html.pages import Shown

WHOLE = 10_000


def costs(instructions: int, weight_bytes: int = 0, scratch_bytes: int = 0) -> KernelCosts:
    return KernelCosts(instructions=instructions, weight_bytes=weight_bytes, scratch_bytes=scratch_bytes)


SLOW = ConsideredKernel(kernel="slow", reason="best for balanced", chosen=True, costs=costs(1000, 10, 20))
REFUSED = ConsideredKernel(kernel="quick", reason="channels are multiplied")
NOT_HERE = ConsideredKernel(kernel="vector", reason="the core has no vector extension (MVE)")


def record(*considered: ConsideredKernel, bound: int | None = 100) -> OperatorRecord:
    return OperatorRecord(
        layer="l",
        type="CONV_2D",
        kernel="slow",
        backend=BackendId("CpuAcc"),
        device="CpuAcc",
        macs=1,
        constant_bytes=0,
        scratch_bytes=0,
        considered=considered,
        bound=bound,
    )


@pytest.mark.parametrize(
    ("instructions", "bound", "whole", "is_costly"),
    [
        (1000, None, WHOLE, False),
        (150, 100, WHOLE // 10, False),
        (151, 100, WHOLE // 10, True),
        (200, 100, WHOLE, False),
        (201, 100, WHOLE, True),
    ],
)
def test_a_layer_is_costly_if_it_wastes_much(instructions: int, bound: int | None, whole: int, is_costly: bool) -> None:
    assert bool(advice(record(SLOW, bound=bound), instructions, whole)) is is_costly


@pytest.mark.parametrize(
    ("considered", "help_"),
    [
        ((SLOW,), "there is no better kernel for it"),
        ((NOT_HERE, SLOW), "there is no better kernel for it"),
        ((NOT_HERE, REFUSED, SLOW), "quick: channels are multiplied"),
        (
            (REFUSED, ConsideredKernel(kernel="large", reason="", costs=costs(900, 15, 2020)), SLOW),
            "large would save 10% for 5 B of weights and 2,000 B of scratch, with the goal speed or a lower price",
        ),
        ((ConsideredKernel(kernel="hardly", reason="", costs=costs(901)), SLOW), "there is no better kernel for it"),
    ],
)
def test_the_advice_names_what_would_help(considered: tuple[ConsideredKernel, ...], help_: str) -> None:
    text = advice(record(*considered), 1000, WHOLE)
    assert text == f"CONV_2D by slow, 10.0 times the 100 instructions of the best kernels known: {help_}"


def costly() -> Network:
    """Return a layer for which there is no kernel but the generic one, since its output is scaled up."""
    network = Network("costly")
    source = TensorInfo(name="x", shape=(1, 9, 9, 8), dtype=DataType.INT8, quantization=Quantization.of(0.5))
    output = network.add_depthwise_conv2d_layer(
        network.add_input(source),
        np.arange(72, dtype=np.int8).reshape(1, 3, 3, 8) % 3 - 1,
        np.zeros(8, np.int32),
        weights_quantization=Quantization.of(0.5),
        quantization=Quantization.of(0.1),
        name="wide",
    )
    network.set_outputs([output])
    return network


def shown(document: Shown) -> str:
    console = Console(file=StringIO(), width=400)
    print_report(document, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.emu
def test_a_run_and_an_inspection_name_the_costly_layer() -> None:
    require_module("unicorn", "pip install ferrule[run]")
    report = ferrule.compile(costly(), board="nrf52840dk").run()
    (layer,) = report.layers
    assert layer.bound is not None
    assert f"{layer.count / layer.bound:.1f} times the {layer.bound:,} instructions" in layer.advice
    assert "an output is scaled up" in layer.advice
    assert f"layer 0 'wide', 100.0%: {layer.advice}" in shown(report)
    inspected = ferrule.inspect(costly(), board="nrf52840dk", kernels=True)
    assert inspected.kernels is not None
    assert "an output is scaled up" in inspected.kernels[0].advice
    assert "layer 0 'wide': DEPTHWISE_CONV_2D by" in shown(inspected)
