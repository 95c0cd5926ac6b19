# SPDX-License-Identifier: Apache-2.0
"""The firmware face: the C generated for layers, compiled for a board and run on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
import pytest

from ferrule.backends.backend import Backend
from ferrule.backends.capability import declared_rules
from ferrule.backends.guarded import guarded
from ferrule.backends.target import Face, default_target
from ferrule.errors import MissingToolError
from ferrule.graph import Array, DataType, Graph, LayerType, Rounding
from ferrule.network import Network
from ferrule.operators.table import OPERATORS
from ferrule.report import RunReport
from ferrule.running import compile as compile_firmware
from ferrule.testing.backends.comparison import graph_difference, random_inputs
from ferrule.testing.backends.family import SubjectFamily
from ferrule.testing.backends.layer_cases import LAYER_TYPES, add_case, offset_weights, renamed
from ferrule.testing.backends.layers import refusal_of_reference, shared_case
from ferrule.testing.backends.subject import Subject

_TYPES = (DataType.INT8, DataType.INT16, DataType.FLOAT32)
_SEEDS = range(4)
_MORE_SEEDS = range(4, 64)
_CORE = "CpuAcc"


class FirmwareFamily(SubjectFamily):
    """Tests of the results of a backend's layers on a board; they need `pip install 'ferrule[run]'`."""

    @pytest.mark.parametrize("dtype", _TYPES, ids=str)
    def test_layers_on_a_board(self, subject: Subject, dtype: DataType) -> None:
        """All supported layers of one element type, side by side in one firmware, agree with the reference."""
        backend = guarded(subject.registry().create(subject.id))
        assert backend.firmware_target() is not None, f"{subject.id} has no firmware face"
        cases = taken(backend, dtype)
        if not cases:
            return
        inputs = [inputs_of(case) for case in cases]
        report = self._run(subject, side_by_side(cases), [array for arrays in inputs for array in arrays])
        results = iter(report.outputs)
        for case, given in zip(cases, inputs, strict=True):
            wrong = graph_difference(case, given, [next(results) for _ in case.outputs])
            assert not wrong, f"{case.name} with {case.layers[0].descriptor}, on the board: {wrong}"
        owners = {layer.backend for layer in report.layers}
        assert subject.id in owners, f"{subject.id} accepted the layers, but they run on {sorted(owners)}"
        assert owners <= {subject.id, _CORE}, f"{subject.id} accepted the layers, but they run on {sorted(owners)}"

    def test_it_takes_something(self, subject: Subject) -> None:
        """The backend supports at least one layer; otherwise all other tests here would pass vacuously."""
        backend = subject.registry().create(subject.id)
        assert any(taken(backend, dtype) for dtype in _TYPES), f"{subject.id} supports none of the families' layers"

    def _run(self, subject: Subject, network: Network, inputs: Sequence[Array]) -> RunReport:
        try:
            firmware = compile_firmware(
                network,
                backends=list(dict.fromkeys([subject.id, _CORE])),
                registry=subject.registry(),
                model_options={subject.id: subject.model_options},
            )
            return firmware.run(list(inputs), check_ownership=True)
        except MissingToolError as error:
            pytest.skip(f"{error}; {error.hint}")


def taken(backend: Backend, dtype: DataType) -> list[Graph]:
    """Return, for each layer type and declared rule, the first sample with this type that the backend supports.

    Beside a layer with weights is the same layer whose weights have a zero point, if the backend supports it, too. For
    a backend that supports none of the first samples, such as one of few shapes, more are drawn.
    """
    more = shared_case.__wrapped__  # which keeps nothing
    return _supported(backend, dtype, shared_case, _SEEDS) or _supported(backend, dtype, more, _MORE_SEEDS)


def _supported(
    backend: Backend,
    dtype: DataType,
    draw: Callable[[LayerType, DataType, int, Rounding], tuple[Graph, str]],
    seeds: Iterable[int],
) -> list[Graph]:
    support, target = backend.layer_support(), default_target(backend.id, Face.FIRMWARE)
    declared = declared_rules(backend.capabilities()) if dtype is DataType.INT8 else frozenset({Rounding.TFLM})
    found = []
    for type_, rule in product(LAYER_TYPES, sorted(declared | {Rounding.TFLM})):
        if rule not in OPERATORS[type_].rules:
            continue
        cases = (draw(type_, dtype, seed, rule) for seed in seeds)
        valid = (case for case, refusal in cases if not refusal)
        case = next((case for case in valid if support.supports(case, case.layers[0], target)), None)
        if case is None:
            continue
        found.append(case)
        offset = offset_weights(case) if rule is Rounding.TFLM else None
        if offset is None or refusal_of_reference(offset):
            continue
        if support.supports(offset, offset.layers[0], target):
            found.append(offset)
    return found


def inputs_of(case: Graph) -> list[Array]:
    """Return inputs that include the lowest and highest values."""
    arrays = random_inputs(case, 1)
    for array in arrays:
        if array.dtype.kind == "i":
            array.reshape(-1)[:2] = np.asarray([np.iinfo(array.dtype).min, np.iinfo(array.dtype).max])[: array.size]
    return arrays


def side_by_side(cases: Sequence[Graph]) -> Network:
    """Return a network with the inputs, layers and outputs of all graphs, named after their graphs."""
    result = Network("side_by_side")
    outputs: list[str] = []
    for case in cases:
        outputs += add_case(result, case, renamed(case, case.name), case.name)
    result.set_outputs(outputs)
    return result
