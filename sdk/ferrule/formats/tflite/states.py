# SPDX-License-Identifier: Apache-2.0
"""How the states of a network are written: as variable tensors of operators, or as variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.encoder import OperatorContent, SubgraphContent
from ferrule.formats.tflite.row import Row
from ferrule.graph import Graph, Layer, LayerType, State, Tensor, reset_value
from ferrule.graph.names import UniqueNames
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

_INITIALISER = 1
"""The number of the subgraph that assigns the initial values."""


class WrittenStates:
    """The states of a network as parts of a file."""

    def __init__(self, graph: Graph, rows: Mapping[LayerType, Row]) -> None:
        """Raises UnsupportedError if the format cannot express the states of a layer."""
        self._graph = graph
        states = {state.source: state for state in graph.states}
        kept: dict[str, State] = {}
        hidden: set[str] = set()
        for layer in graph.layers:
            row = rows.get(layer.type)
            if row is None:
                continue
            count = len(OPERATORS[layer.type].states(layer.descriptor, Operands.of(graph, layer)))
            positions = row.state_inputs or range(len(layer.inputs) - count, len(layer.inputs))
            if positions:
                kept |= {state.source: state for state in self._kept_by(layer, positions, states)}
            hidden.update(layer.present_inputs[len(layer.present_inputs) - count :])
        keeping = (layer for layer in graph.layers if layer.type in rows and rows[layer.type].keeps_output)
        self.variables = frozenset(kept) - hidden | {layer.outputs[0] for layer in keeping}
        """The tensors that operators keep from run to run."""
        self.left_out = frozenset(state.result for state in kept.values()) | hidden
        """The tensors that a file does not have."""
        others = [state for source, state in states.items() if source not in kept]
        names = UniqueNames(tensor.info.name for tensor in graph.tensors)
        self._handles = {names.take(f"{state.name}/handle"): state for state in others}
        self.resources = tuple(self._handles)
        """The tensors that refer to variables."""

    def before(self) -> Iterator[OperatorContent]:
        """Yield the operators that read the old values."""
        yield from self._declarations(self._handles)
        if self.initialiser() is not None:
            fields = {"init_subgraph_index": _INITIALISER}
            yield OperatorContent(type="CALL_ONCE", table="CallOnceOptions", fields=fields)
        for handle, state in self._handles.items():
            yield OperatorContent(
                type="READ_VARIABLE", table="ReadVariableOptions", inputs=(handle,), outputs=(state.source,)
            )

    def behind(self) -> Iterator[OperatorContent]:
        """Yield the operators that store the new values."""
        return (_assignment(handle, state.result) for handle, state in self._handles.items())

    def initialiser(self) -> SubgraphContent | None:
        """Return the subgraph that assigns initial values; None if all are the format's own."""
        handles = {handle: state for handle, state in self._handles.items() if not self._is_default(state)}
        if not handles:
            return None
        values = [
            Tensor(replace(self._graph.info(state.source), name=f"{state.name}/initial"), state.initial)
            for state in handles.values()
        ]
        assignments = (_assignment(handle, value.info.name) for handle, value in zip(handles, values, strict=True))
        return SubgraphContent(
            name="initialise",
            tensors=tuple(values),
            operators=(*self._declarations(handles), *assignments),
            inputs=(),
            outputs=(),
            resources=tuple(handles),
        )

    def _declarations(self, handles: Mapping[str, State]) -> Iterator[OperatorContent]:
        for handle, state in handles.items():
            fields = {"container": "", "shared_name": state.name}
            yield OperatorContent(type="VAR_HANDLE", table="VarHandleOptions", fields=fields, outputs=(handle,))

    def _is_default(self, state: State) -> bool:
        """Whether a variable has its initial value without an initialiser, whichever tensor an interpreter looks at."""
        infos = (self._graph.info(state.source), self._graph.info(state.result))
        return all(np.array_equal(state.initial, reset_value(info)) for info in infos)

    def _kept_by(self, layer: Layer, positions: Sequence[int], states: Mapping[str, State]) -> Iterator[State]:
        """Yield the states of a layer that has variable tensors in a file; UnsupportedError if one is another kind."""
        results = layer.outputs[-len(positions) :]
        for position, result in zip(positions, results, strict=True):
            state = states.get(layer.inputs[position] or "")
            if state is None or state.result != result or not self._is_private(state):
                raise UnsupportedError(
                    f"layer '{layer.name}': TensorFlow Lite's {layer.type} keeps its own state, expected input "
                    f"{position} to be a state that gets output '{result}' and that nothing else uses"
                )
            if not np.array_equal(state.initial, reset_value(self._graph.info(state.source))):
                raise UnsupportedError(
                    f"layer '{layer.name}': the state '{state.name}' has initial values of its own, which "
                    f"TensorFlow Lite's {layer.type} cannot express; expected zeros, or int8's zero point"
                )
            yield state

    def _is_private(self, state: State) -> bool:
        uses = [name for layer in self._graph.layers for name in layer.present_inputs]
        uses += [info.name for info in self._graph.results]
        return uses.count(state.source) == uses.count(state.result) == 1


def _assignment(handle: str, value: str) -> OperatorContent:
    return OperatorContent(type="ASSIGN_VARIABLE", table="AssignVariableOptions", inputs=(handle, value))
