# SPDX-License-Identifier: Apache-2.0
"""The network: a graph that can be built layer by layer, checked and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from numpy.typing import ArrayLike

from ferrule.budget import current
from ferrule.graph import Array
from ferrule.network.activation_layers import ActivationLayers
from ferrule.network.arithmetic_layers import ArithmeticLayers
from ferrule.network.control_layers import ControlLayers
from ferrule.network.detection_layers import DetectionLayers
from ferrule.network.elementwise_layers import ElementwiseLayers
from ferrule.network.execution import check_state, initial_state, run_stateful
from ferrule.network.movement_layers import MovementLayers
from ferrule.network.recurrent_layers import RecurrentLayers
from ferrule.network.reduction_layers import ReductionLayers
from ferrule.network.samples import beginnings, joined, split
from ferrule.network.shape_layers import ShapeLayers
from ferrule.network.signal_layers import SignalLayers
from ferrule.network.spatial_layers import SpatialLayers
from ferrule.network.validation import check_layers
from ferrule.network.weighted_layers import WeightedLayers
from ferrule.operators.interpreter import Observer, macs_of
from ferrule.operators.work import check_work
from ferrule.rendering import shown


class Network(
    ActivationLayers,
    ArithmeticLayers,
    ControlLayers,
    DetectionLayers,
    ElementwiseLayers,
    MovementLayers,
    RecurrentLayers,
    ReductionLayers,
    ShapeLayers,
    SignalLayers,
    SpatialLayers,
    WeightedLayers,
):
    """A graph of layers that runs on the numpy kernels; it is read from a file or built with its `add_*` methods."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._checked_layers = 0
        self._afforded: tuple[object, ...] = ()
        """The number of layers for which a run was compared with a budget, and that budget's limits."""
        self.signatures: tuple[str, ...] = ()
        """The names of the signatures of the file, the network's own first; empty if it has none."""
        self.notes: tuple[str, ...] = ()
        """What the reader made of the file that the layers do not show, such as old forms of operators."""

    def _repr_html_(self) -> str:
        """Return the network as notebooks show it: its inspection, or why there is none, such as before its outputs."""
        import ferrule  # the facade: inspections are in packages that come after this one

        try:
            return ferrule.inspect(self, division=False)._repr_html_()
        except ferrule.FerruleError as error:
            return f"<pre>{escape(shown(f'{self!r}: {error}'))}</pre>"

    def validate(self) -> None:
        """Check every layer; UnsupportedError or ModelError names every invalid layer and the reason."""
        check_layers(self, self.layers)
        self._checked_layers = len(self.layers)

    def initial_state(self) -> dict[str, Array]:
        """Return the values of the states after a reset, by name; empty for a network without state."""
        return initial_state(self)

    def run(
        self,
        inputs: Sequence[ArrayLike] | Mapping[str, ArrayLike],
        *,
        state: dict[str, Array] | None = None,
        observe: Observer | None = None,
        real: bool = False,
        reset_each: bool | Sequence[bool] = False,
    ) -> list[Array]:
        """Return the outputs for one array per input, in order or by name, computed by the numpy kernels.

        Each array has its input's shape, or a first axis n times as long for n samples; the outputs of several samples
        are joined along the first axis. With `real`, inputs and outputs are real numbers; see `TensorInfo.quantize` and
        `TensorInfo.dequantize`.

        The samples are one sequence, which begins with the values in `state`, by default the initial ones, and updates
        `state` if it succeeds; the next run of the sequence gets the same dictionary. With `reset_each`, each sample
        begins with these values instead, or each for which its value in a sequence is true, and the last one updates
        `state`. `observe` is called after each layer with its outputs, in the order of execution, for one sample after
        the other.

        Raises:
            InputError: an array is missing or unknown, or its shape or dtype differs from the input's or the state's.
            BudgetError: a run takes more memory or work than the present budget has (`ferrule.limits`).
            UnsupportedError, ModelError: see `validate`.
        """
        if self._checked_layers < len(self.layers):  # a graph only grows, so the number tells whether it has changed
            check_layers(self, self.layers[self._checked_layers :])
            self._checked_layers = len(self.layers)
        asked = (len(self.layers), *current().limits.values())
        if self._afforded != asked:
            check_work(self)
            self._afforded = asked
        first = initial_state(self) if state is None else state
        check_state(self, first)
        values, results = dict(first), []
        samples = split(self.inputs, inputs, real=real, owner=f"network '{self.name}'")
        for sample, anew in zip(samples, beginnings(len(samples), reset_each), strict=True):
            if anew:
                values = dict(first)
            arrays = {info.name: array for info, array in zip(self.inputs, sample, strict=True)}
            results.append(run_stateful(self, arrays, values, observe))
        first.update(values)
        return joined(self.outputs, results, real=real)

    def macs(self) -> int:
        """Return the number of multiply-accumulates of one run; operators without products count as zero."""
        return macs_of(self, self.layers)
