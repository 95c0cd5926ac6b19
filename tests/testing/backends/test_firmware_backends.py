# SPDX-License-Identifier: Apache-2.0
"""The family for the firmware face, run on every backend that has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from needs import require_module

from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext
from ferrule.backends.registry import BackendRegistry, registry_with
from ferrule.backends.target import Target
from ferrule.dom import Call, Evaluate, Identifier, Integer
from ferrule.emulation import OwnershipError
from ferrule.graph import DataType, Graph, Layer, LayerType
from ferrule.testing.backends import FirmwareFamily, Subject

pytestmark = [pytest.mark.cc, pytest.mark.emu]
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")


class TestCpuAcc(FirmwareFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="CpuAcc")


class TestMyCustom(FirmwareFamily):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject.of_folder("MyCustom", EXAMPLES / "custom_backend" / "my_custom")


class Confused:
    """Lowers MAXIMUM as if it were MINIMUM."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        target = CpuAcc().firmware_target()
        assert target is not None
        return target.lower(replace(context, layer=replace(context.layer, type=LayerType.MINIMUM)))


class OnlyMaximum:
    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        refused = layer.type is not LayerType.MAXIMUM
        return Support("it has MAXIMUM only") if refused else CpuAcc().layer_support().supports(graph, layer, target)


class Wrong(CpuAcc):
    id = BackendId("Wrong")

    def layer_support(self) -> LayerSupport:
        return OnlyMaximum()

    def firmware_target(self) -> FirmwareTarget:
        return Confused()


def subject_of(backend: type[Backend]) -> Subject:
    def registry() -> BackendRegistry:
        made = registry_with(())
        made.register(backend.id, backend, origin="test")
        return made

    return Subject(id=backend.id, registry=registry)


def test_it_finds_c_that_computes_something_else() -> None:
    with pytest.raises(AssertionError, match=r"maximum_int8_0 .*, on the board: output .* differs in \d+ of"):
        FirmwareFamily().test_layers_on_a_board(subject_of(Wrong), DataType.INT8)


class Greedy:
    """Copies the first input, and more than it has."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        size = Integer(context.operands.output.size_bytes + 64, unsigned=True)
        call = Call(Identifier("memmove"), (context.output_pointer(), context.input_pointer(0), size))
        return LoweredOp(kernel="greedy", statements=(Evaluate(call),))


class TooMuch(Wrong):
    id = BackendId("TooMuch")

    def firmware_target(self) -> FirmwareTarget:
        return Greedy()


def test_it_finds_c_that_accesses_other_bytes() -> None:
    """The start-up run, whose layers are not announced, finds it first."""
    with pytest.raises(OwnershipError, match="tensor 'maximum_int8_0_output_0', which was not written there"):
        FirmwareFamily().test_layers_on_a_board(subject_of(TooMuch), DataType.INT8)


def test_it_is_not_for_backends_of_the_host() -> None:
    with pytest.raises(AssertionError, match="CpuRef has no firmware face"):
        FirmwareFamily().test_layers_on_a_board(Subject(id="CpuRef"), DataType.INT8)


def test_it_does_not_pass_for_backends_that_take_nothing() -> None:
    nothing = type("Nothing", (Wrong,), {"id": BackendId("Nothing"), "layer_support": lambda self: Refusing()})
    with pytest.raises(AssertionError, match="supports none of the families' layers"):
        FirmwareFamily().test_it_takes_something(subject_of(nothing))


class Refusing:
    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        return Support("no")
