# SPDX-License-Identifier: Apache-2.0
"""Variables of a model: reads and assignments in the order of the operators become states of the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ferrule._frozen import positional
from ferrule._typing import override
from ferrule.budget import hold
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.records import OperatorRecord, text_of
from ferrule.formats.tflite.tensors import Tensors
from ferrule.graph import Array, Graph, Kept, TensorInfo, reset_value
from ferrule.graph.names import UniqueNames

VARIABLE_OPERATORS = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"})
"""The operators that become part of the network's states and are no layers."""


@positional
class Variable:
    """The identity of a variable: its container and its shared name, as in the options of VAR_HANDLE."""

    container: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.container}/{self.name}" if self.container else self.name


Initialise = Callable[[int], Mapping[Variable, Array]]
"""Evaluates a subgraph, given by its number, and returns the values that it assigns."""


class Variables:
    """The variables of one subgraph while its operators are read in order."""

    def __init__(self, graph: Graph, tensors: Tensors, initialise: Initialise, source: Callable[[int], str]) -> None:
        """`source` returns the network's tensor for a tensor of the file that is read."""
        self._graph = graph
        self._tensors = tensors
        self._initialise = initialise
        self._source = source
        self._state_names = UniqueNames()
        self._fresh = UniqueNames(tensors.names)
        self._handles: dict[int, Variable] = {}
        """By number of the resource tensor."""
        self._initial: dict[Variable, Array] = {}
        self.assigned: dict[Variable, str] = {}
        """The tensor with the value of each variable that has been assigned so far."""
        self._states: dict[Variable | int | str, str] = {}
        """The state of each variable, of each variable tensor by its number, and of each hidden state by its name."""
        self._names: dict[int | str, str] = {}
        """By number of a tensor, and by name of a hidden state: the tensor of the network that has its value."""

    def name(self, index: int) -> str | None:
        """Return the tensor of the network that stands for a tensor of the file; None if it is the tensor itself."""
        return self._names.get(index)

    def add(self, record: OperatorRecord) -> None:
        """Read one of `VARIABLE_OPERATORS`; an output that it defines has a `name` afterwards."""
        node = Node(record, self._tensors)
        read = {
            "VAR_HANDLE": self._declare,
            "CALL_ONCE": self._call_once,
            "READ_VARIABLE": self._read,
            "ASSIGN_VARIABLE": self._assign,
        }
        read[record.type](node)

    def old_value(self, index: int) -> str:
        """Return the network's tensor with the present value of a variable tensor, which becomes a state."""
        if index not in self._names:
            info = self._tensors.info(index)
            if not self._tensors.record(index).is_variable:
                raise UnsupportedError(f"tensor '{info.name}' is not a variable, expected one that keeps state")
            self._states[index] = self._state_names.take(info.name)
            self._names[index] = self._graph.add_state(info, self._unset_value(info), name=self._states[index])
        return self._names[index]

    def new_value(self, index: int) -> TensorInfo:
        """Return the description of a new tensor for the next value of a variable tensor."""
        info = self._tensors.info(index)
        return self.fresh(replace(info, name=f"{info.name}_next"))

    def hidden(self, layer: str, kept: Kept) -> tuple[TensorInfo, TensorInfo]:
        """Add a state that an operator keeps inside of it, and describe the tensors of its old and its new value.

        Its key for `replace_value` is the name of the tensor with the old value.
        """
        info = kept.info(self._fresh.take(f"{layer}_{kept.role}"))
        self._names[info.name] = self._add_state(info.name, info, self._unset_value(info))
        return info, self.fresh(replace(info, name=f"{info.name}_next"))

    def replace_value(self, index: int | str, name: str) -> None:
        """Make a tensor of the network the present value of a variable tensor."""
        self._names[index] = name

    def finish(self) -> None:
        """Give every state the value that its variable has after the last operator."""
        for key, state in self._states.items():
            result = self.assigned.get(key) if isinstance(key, Variable) else self._names[key]
            if result is not None:
                self._graph.set_state(state, result)

    def identities(self, subgraph: int) -> dict[str, Variable]:
        """Make all variables of a subgraph states, also those that are only assigned, and return them by state."""
        for variable, value in self.assigned.items():
            if variable not in self._states:
                info = replace(self._graph.info(value), name=self._fresh.take(f"{str(variable) or value}_old"))
                self._add_state(variable, info, self._unset_value(info))
                self._graph.set_state(self._states[variable], value)
        return {
            state: key if isinstance(key, Variable) else Variable(f"subgraph {subgraph}", state)
            for key, state in self._states.items()
        }

    def present(self, variable: Variable, info: TensorInfo) -> str:
        """Return the network's tensor with the present value of a variable; `info` describes how it is read.

        Raises:
            ModelError, UnsupportedError: the variable has another type, shape or quantisation.
        """
        name = self.assigned.get(variable)
        if name is None and variable in self._states:
            name = next(state.source for state in self._graph.states if state.name == self._states[variable])
        if name is not None:
            present = self._graph.info(name)
            if replace(present, name=info.name) != info:
                raise UnsupportedError(
                    f"variable '{variable}' has tensor '{name}' {_described(present)} and is read as "
                    f"{_described(info)}, expected the same"
                )
            return name
        initial = self._initial.get(variable)
        if initial is None:
            initial = self._unset_value(info)
        elif (initial.shape, initial.dtype) != (info.shape, info.dtype.numpy):
            raise ModelError(
                f"variable '{variable}' is initialised with {initial.dtype}{list(initial.shape)}, "
                f"expected {info.dtype}{list(info.shape)}"
            )
        return self._add_state(variable, info, initial)

    def fresh(self, info: TensorInfo) -> TensorInfo:
        """Return a description with a name that neither the network nor the file has."""
        return replace(info, name=self._fresh.take(info.name))

    def _add_state(self, variable: Variable | str, info: TensorInfo, initial: Array) -> str:
        self._states[variable] = self._state_names.take(str(variable) or info.name)
        return self._graph.add_state(info, initial, name=self._states[variable])

    def _declare(self, node: Node) -> None:
        node.check_arity(range(1), range(1, 2))
        options = node.options("VarHandleOptions")
        self._handles[node.record.outputs[0]] = Variable(text_of(options.container), text_of(options.shared_name))

    def _call_once(self, node: Node) -> None:
        node.check_arity(range(1), range(1))
        values = self._initialise(node.options("CallOnceOptions").init_subgraph_index)
        for variable, value in values.items():
            if variable in self._states or variable in self.assigned:
                raise UnsupportedError(f"it initialises variable '{variable}' after its first use, expected it before")
            self._initial[variable] = value

    def _unset_value(self, info: TensorInfo) -> Array:
        """Return the value without an initialiser, which a small file may state of any size."""
        hold(info.size_bytes, f"variable '{info.name}' without an initial value")
        return reset_value(info)

    def _read(self, node: Node) -> None:
        node.check_arity(range(1, 2), range(1, 2))
        variable, index = self._variable(node), node.record.outputs[0]
        self._names[index] = self.present(variable, self._tensors.info(index))

    def _assign(self, node: Node) -> None:
        node.check_arity(range(2, 3), range(1))
        self.assigned[self._variable(node)] = self._source(node.record.inputs[1])

    def _variable(self, node: Node) -> Variable:
        found = self._handles.get(node.record.inputs[0])
        if found is None:
            raise ModelError("its input 0 is not the output of a VAR_HANDLE before it")
        return found


def _described(info: TensorInfo) -> str:
    quantization = "" if info.quantization is None else f" ({info.quantization})"
    return f"{info.dtype}{list(info.shape)}{quantization}"
