# SPDX-License-Identifier: Apache-2.0
"""Which layers EthosU supports: Vela judges each on its own, unless it is known to round the layer otherwise."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ferrule.backends.backend import Support
from ferrule.backends.ethos_u.compiler import refused_alone
from ferrule.backends.ethos_u.known_differences import known_reason
from ferrule.backends.ethos_u.program import program_of
from ferrule.backends.ethos_u.settings import Settings, configuration_of_device, settings_of, timeout_s
from ferrule.backends.ethos_u.vela import vela_version
from ferrule.backends.target import Target
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer, LayerType, Rounding, SubgraphView
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

_judged: WeakKeyDictionary[Graph, dict[Settings, dict[str, str]]] = WeakKeyDictionary()
"""The reasons against the layers of graphs that still exist, by name."""


class EthosUSupport:
    """Supports the layers that Vela compiles on their own for the device's configuration."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the NPU can run the layer.

        The first question about a graph asks Vela about all of its layers at once.

        Raises:
            MissingToolError: Vela is not installed.
            FerruleError: the device's binding or an option is wrong, or Vela takes too long.
        """
        vela_version()
        if layer.type is LayerType.PRE_COMPILED:
            return Support(_refused_program(layer, target))
        settings = settings_of(target)
        judged = _judged.setdefault(graph, {})
        if settings not in judged:
            judged[settings] = _judge(graph, settings, timeout_s(target.options))
        return Support(judged[settings][layer.name])


def _refused_program(layer: Layer, target: Target) -> str:
    program = program_of(layer)
    if program is None:
        return "it was compiled by another backend"
    wanted = configuration_of_device(target.device).name
    compiled = program.stream.configuration.name
    return "" if compiled == wanted else f"it is compiled for {compiled}, device '{target.device.name}' is {wanted}"


def _judge(graph: Graph, settings: Settings, limit_s: int) -> dict[str, str]:
    """Return the reasons against the layers of a graph, by name; empty for supported ones."""
    reasons = {layer.name: _refused_at_once(graph, layer) for layer in graph.layers}
    asked = [name for name, reason in reasons.items() if not reason]
    return reasons | refused_alone(SubgraphView.of(graph, asked), settings, limit_s=limit_s)


def _refused_at_once(graph: Graph, layer: Layer) -> str:
    """Return a reason against a layer that needs no question to Vela; "" if there is none."""
    if layer.rounding is not Rounding.TFLM:
        return f"it rounds by {layer.rounding.phrase} ('{layer.rounding}'), the NPU rounds as TensorFlow Lite Micro"
    if layer.type not in OPERATORS or layer.type is LayerType.PRE_COMPILED:
        return f"Vela has no {layer.type}"
    if all(graph.tensor(name).is_constant for name in layer.present_inputs):
        return "all of its inputs are constants"
    operands = Operands.of(graph, layer)
    try:
        OPERATORS[layer.type].accept(layer.descriptor, operands)
    except FerruleError as error:
        return str(error)
    return known_reason(graph, layer)
