# SPDX-License-Identifier: Apache-2.0
"""Reads the bytes of a .tflite file into a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ferrule.budget import Resource, Tally
from ferrule.errors import FerruleError, ModelError, UnsupportedError, place, together, unknown_name
from ferrule.formats.tflite.adaptation import SELECT, Added, adapted, added, layers_before, with_layer_behind
from ferrule.formats.tflite.calls import hoisted
from ferrule.formats.tflite.computed_slice import ComputedSlice, has_computed_range
from ferrule.formats.tflite.folding import FOLDS, Folding
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.operators import CUSTOM, OPERATORS
from ferrule.formats.tflite.periods import refuse_periods, with_periods
from ferrule.formats.tflite.records import OperatorRecord, SubgraphRecord, read_model
from ferrule.formats.tflite.refusals import kind_of, unsupported
from ferrule.formats.tflite.row import Row
from ferrule.formats.tflite.tensors import Tensors, check_signature, real_values
from ferrule.formats.tflite.unsigned import Unsigned
from ferrule.formats.tflite.variables import VARIABLE_OPERATORS, Variable, Variables
from ferrule.formats.tflite.versions import check_version, rule_of
from ferrule.formats.tflite.windows import needs_narrow_bias
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.interface import option
from ferrule.network import Network, check_kernel
from ferrule.network.builder import bias_quantization
from ferrule.operators.control_flow import DEEPEST, DEFAULT_ITERATIONS
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS as KERNELS
from ferrule.operators.table import having


def read_tflite(
    data: bytes,
    name: str,
    dequantize_weights: bool = False,
    max_iterations: int = DEFAULT_ITERATIONS,
    rounding: str = "tflm",
    signature: str | None = None,
) -> Network:
    """Return the network of a TensorFlow Lite model: of its first subgraph, or of the one that a signature runs.

    Tensor names are kept, except that empty and repeated ones are numbered; layers are named `<type>_<position>`. An
    unknown batch size is read as 1. A network that is returned is valid (`Network.validate`). `dequantize_weights`
    makes quantised weights of layers with float32 activations float32, instead of refusing such layers.
    `max_iterations` is the limit of each loop, and `rounding` names the program whose results the layers have.

    Raises:
        FerruleError: there is no such program, see `versions.VERSIONS`, or no such signature.
        ModelError: the file is malformed; the message names the place.
        UnsupportedError: the model uses features that networks do not support; the message names every operator that
            is refused, and the reason.
    """
    subgraphs = read_model(data)
    check_version(rounding)
    file = _File(subgraphs, dequantize_weights, max_iterations, rounding)
    network = file.reader(file.choose(signature), name).network()
    file.require_one_signature()
    network.signatures = file.signatures()
    return network


class _File:
    """The subgraphs of one file, each read when it is called."""

    def __init__(
        self,
        subgraphs: tuple[SubgraphRecord, ...],
        dequantize_weights: bool,
        max_iterations: int,
        version: str,
    ) -> None:
        self._subgraphs = subgraphs
        self.folded = Tally()
        """The work that computing constants may take."""
        self._dequantize_weights = dequantize_weights
        self.max_iterations = max_iterations
        self.version = version
        self._read: set[int] = set()
        self._main = 0
        self._signature: str | None = None
        self._open: list[int] = []
        """The subgraphs that are being read, each of which calls the next one."""
        self.identities: dict[int, dict[str, Variable]] = {}
        """By id of a subgraph's network: the variables that its states stand for, by name of the state."""
        self._called: list[Network] = []
        """The subgraphs' networks, which keep their ids."""

    def reader(self, index: int, name: str) -> _Reader:
        """Return the reader of a subgraph, which exists and has not been read."""
        self._read.add(index)
        reader = _Reader(self, self._subgraphs[index], name)
        if self._dequantize_weights:
            reader.dequantize_weights()
        return reader

    def called(self, index: int) -> Network:
        """Return a subgraph that IF or WHILE calls; its states are the variables that it uses, see `identities`."""
        with self._calling(index):
            network, variables = self.reader(index, self._subgraphs[index].name or f"subgraph_{index}").subgraph(index)
        self._called.append(network)
        self.identities[id(network)] = variables
        return network

    def initialise(self, index: int) -> dict[Variable, Array]:
        """Run a subgraph once and return the values that it assigns to variables."""
        with self._calling(index):
            return self.reader(index, f"subgraph_{index}").assigned_values()

    @contextmanager
    def _calling(self, index: int) -> Iterator[None]:
        """Check that a subgraph may be called, and name it in errors."""
        with place(f"subgraph {index}"):
            if not 0 <= index < len(self._subgraphs):
                raise ModelError(f"it does not exist, the model has {len(self._subgraphs)}")
            if index in self._read:
                again = "calls itself" if index in (self._main, *self._open) else "is called more than once"
                raise UnsupportedError(
                    f"'{self._subgraphs[index].name}' {again}, expected one call of each subgraph",
                    hint="convert the model with a copy of the subgraph for each call",
                )
            if len(self._open) == DEEPEST:
                raise UnsupportedError(f"more than {DEEPEST} subgraphs call one another")
            self._open.append(index)
            try:
                yield
            finally:
                self._open.pop()

    def choose(self, signature: str | None) -> int:
        """Return the number of the subgraph that a signature runs; 0 without one.

        Raises:
            FerruleError: the file has no such signature.
        """
        if signature is None:
            return self._main
        found = [index for index, record in enumerate(self._subgraphs) if signature in record.signatures]
        if not found:
            if self._keys:
                raise unknown_name("signature", signature, self._keys)
            raise FerruleError(
                f"the file has no signatures, and '{signature}' is wanted", hint="leave the signature out"
            )
        if len(found) > 1:
            raise ModelError(f"{len(found)} subgraphs have the signature '{signature}', expected one")
        self._signature, self._main = signature, found[0]
        return self._main

    @property
    def _keys(self) -> list[str]:
        """The names of all signatures."""
        return [key for record in self._subgraphs for key in record.signatures]

    def signatures(self) -> tuple[str, ...]:
        """Return the names of the file's signatures, those that run the network first."""
        own = self._subgraphs[self._main].signatures
        first = own if self._signature is None else (self._signature,)
        return tuple(dict.fromkeys([*first, *self._keys]))

    def require_one_signature(self) -> None:
        """Refuse a file with signatures of subgraphs that the first does not call, unless one was chosen."""
        if self._signature is not None:
            return
        others = [
            key for index, record in enumerate(self._subgraphs) for key in record.signatures if index not in self._read
        ]
        if others:
            names = self._keys
            listed = ", ".join(f"'{key}'" for key in names[:8]) + (", ..." if len(names) > 8 else "")
            raise UnsupportedError(
                f"the file has {len(names)} signatures, {listed}, and the first of {len(self._subgraphs)} subgraphs, "
                f"'{self._subgraphs[0].name}', does not contain '{others[0]}'; expected the name of one",
                hint=f"choose it: {option('signature', 'NAME')}",
            )


class _Reader:
    """The state while one subgraph is read."""

    def __init__(self, file: _File, record: SubgraphRecord, name: str) -> None:
        self._record = record
        self._tensors = Tensors(record)
        self._file = file
        self._folding = Folding(self._tensors, file.folded)
        self._network = Network(name)
        self._variables = Variables(self._network, self._tensors, file.initialise, self._source)
        self._available: set[int] = set()
        borders = frozenset({*record.inputs, *record.outputs})
        self._unsigned = Unsigned(self._tensors, record.operators, borders)
        self._lost: set[int] = set()
        """Outputs of refused operators that have no valid description; operators that read them are not checked."""

    def dequantize_weights(self) -> None:
        """Make the quantised weights of layers with float32 activations float32."""
        weighted = having(weighted=True)
        for record in self._record.operators:
            type_ = _layer_type(record)
            if type_ not in weighted:
                continue
            data, place_of_weights, *_ = OPERATORS[type_].data_inputs
            if len(record.inputs) <= max(data, place_of_weights):
                continue
            image, weights = record.inputs[data], record.inputs[place_of_weights]
            if min(image, weights) < 0:
                continue
            with place(self._where(record)):
                hybrid = self._tensors.info(image).dtype.is_float and self._tensors.info(weights).dtype is DataType.INT8
                if hybrid and self._tensors.is_constant(weights):
                    self._tensors.dequantize(weights)

    def network(self) -> Network:
        """Return the model as a network."""
        if not self._record.outputs:
            raise ModelError("graph outputs: there is none, expected at least one")
        self._finish()
        return with_periods(self._network)

    def subgraph(self, index: int) -> tuple[Network, dict[str, Variable]]:
        """Return a subgraph as a network whose states are the variables that it uses, and these by state."""
        self._finish()
        refuse_periods(self._network)
        return self._network, self._variables.identities(index)

    def _finish(self) -> None:
        self._add_operators()
        with place("graph outputs"):
            names = [self._output(index) for index in self._record.outputs]
        self._network.set_outputs(names)
        self._variables.finish()

    def assigned_values(self) -> dict[Variable, Array]:
        """Return the values that the subgraph, which has no inputs, assigns to variables."""
        if self._record.inputs:
            raise UnsupportedError(f"it has {len(self._record.inputs)} inputs, expected an initialiser without inputs")
        self._add_operators()
        assigned = self._variables.assigned
        self._network.set_outputs(assigned.values())
        return dict(zip(assigned, self._network.run([]), strict=True))

    def _add_operators(self) -> None:
        problems = []
        for index in self._record.inputs:
            try:
                self._add_input(index)
            except FerruleError as error:
                problems.append(error)
                self._lost.add(index)
        for record in self._record.operators:
            if self._lost.intersection(record.inputs) and _is_known(record):
                self._lost.update(record.outputs)
                continue
            try:
                with place(self._where(record), kind_of(record)):
                    self._add(record)
            except FerruleError as error:
                problems.append(error)
                self._stand_in(record)
        if problems:
            raise together(problems, "operators")

    def _add_input(self, index: int) -> None:
        with place("graph inputs"):
            info = self._tensors.info(index)
            check_signature(self._tensors.record(index))
            if self._tensors.is_constant(index):
                raise ModelError(f"tensor '{info.name}' has data, expected an input to have none")
            if self._tensors.record(index).is_variable:
                raise UnsupportedError(f"tensor '{info.name}' is a variable, expected an input without state")
            if index in self._unsigned:
                self._network.add_input(self._unsigned.stored(index))
                self._network.add_layer(*self._unsigned.input_layer(index))
            else:
                self._network.add_input(info)
            self._available.add(index)

    def _output(self, index: int) -> str:
        """Return the name of an output of the network; a tensor that became int8 is converted to uint8 once."""
        name = self._source(index)
        if index not in self._unsigned:
            return name
        layer, outputs = self._unsigned.output_layer(index)
        if not self._network.has_tensor(outputs[0].name):
            self._network.add_layer(layer, outputs)
        return outputs[0].name

    def _add(self, record: OperatorRecord) -> None:
        self._check_outputs(record)
        self._unsigned.check(record)
        if self._unsigned.omits(record):
            self._source(record.inputs[0])
            self._available.update(record.outputs)
            return
        if record.type in VARIABLE_OPERATORS:
            self._variables.add(record)
            self._available.update(record.outputs)
            return
        type_ = _layer_type(record)
        row = None if type_ is None else OPERATORS.get(type_)
        if self._folding.takes(Node(record, self._tensors)):
            return
        if type_ is None or row is None:
            raise unsupported(record)
        self._add_layer(record, type_, row)

    def _check_outputs(self, record: OperatorRecord) -> None:
        for index in record.outputs:
            name = self._tensors.record(index).name
            if index in self._available:
                raise ModelError(f"there is a tensor '{name}' already, expected a new output")
            if self._tensors.is_constant(index):
                raise ModelError(f"output '{name}' has data, expected a computed tensor")

    def _add_layer(self, record: OperatorRecord, type_: LayerType, row: Row) -> None:
        node = Node(record, self._tensors, self._file.called, self._file.max_iterations)
        row.check_arity(node)
        infos = [self._tensors.info(index) for index in record.outputs]
        if type_ is LayerType.STRIDED_SLICE and has_computed_range(node):
            self._add_computed_slice(node)
            return
        descriptor = row.read(node, KERNELS[type_].descriptor)
        if self._folding.takes_layer(node, type_, descriptor, row):
            return
        sources = [self._layer_source(node, row, position) for position in row.positions(node)]
        while sources and sources[-1] is None:  # a trailing absent input is the same as one not listed
            sources.pop()
        if needs_narrow_bias(node):
            sources = [*sources[:2], self._zero_bias(node)]
        name = f"{type_.lower()}_{record.index}"
        sources = list(self._adapted(record, row, name, sources))
        if row.infers_outputs:
            infos = self._inferred(record, type_, descriptor, sources)
        variables = [record.inputs[position] for position in row.state_inputs]
        states: dict[int | str, TensorInfo] = {index: self._variables.new_value(index) for index in variables}
        for kept in KERNELS[type_].states(descriptor, Operands(self._network.infos(sources))):
            old, states[old.name] = self._variables.hidden(name, kept)
            sources.append(old.name)
        outputs = [*infos, *states.values()]
        assigned: dict[Variable, str] = {}
        if descriptor.graphs:
            own = hoisted(descriptor, self._file.identities)
            descriptor = own.descriptor
            described = {variable: self._variables.fresh(info) for variable, info in own.variables.items()}
            sources += [self._variables.present(variable, info) for variable, info in described.items()]
            news = {variable: self._variables.fresh(described[variable]) for variable in own.outputs}
            outputs += news.values()
            assigned = {variable: news[variable].name for variable in own.outputs if variable in own.assigned}
            if not outputs:
                raise UnsupportedError("it has no outputs and assigns no variables, expected one of these")
        layer = Layer(
            name,
            type_,
            descriptor,
            inputs=tuple(sources),
            outputs=tuple(info.name for info in outputs),
        )
        rule = rule_of(self._file.version, self._network, layer)
        if rule is not layer.rounding:
            layer = replace(layer, rounding=rule)
        self._append(record, layer, outputs)
        for key, info in states.items():
            self._variables.replace_value(key, info.name)
        self._variables.assigned |= assigned

    def _adapted(
        self, record: OperatorRecord, row: Row, name: str, sources: Sequence[str | None]
    ) -> tuple[str | None, ...]:
        """Return the inputs of a layer, after the layers have been added that make them of the operator's."""
        if row.real_inputs:
            return tuple(None if source is None else self._real(source) for source in sources)
        positions = row.positions(Node(record, self._tensors))
        wanted = adapted(record.type, row, positions, self._network.infos(sources))
        found = list(sources)
        for number, info, layer in layers_before(self._network, name, sources, wanted):
            self._insert(*([] if layer is None else [layer]))
            found[number] = info.name
        return tuple(found)

    def _add_computed_slice(self, node: Node) -> None:
        record = node.record
        plan = ComputedSlice(node, f"strided_slice_{record.index}", self._network, self._variables.fresh)
        for layer, infos in plan.layers(self._source(record.inputs[0]), self._source(record.inputs[1])):
            self._insert(*self._unsigned.layers(layer, infos))
        self._available.update(record.outputs)

    def _zero_bias(self, node: Node) -> str:
        """Return a new constant: biases of 0 of int32, with which sums are rounded as without biases."""
        output, data, weights = node.output(), node.source, node.input(1)
        channels = weights.shape[0] if weights.shape else 1
        scale = bias_quantization(data, weights.quantization)
        name = f"{output.name}_bias"
        info = TensorInfo(name, (channels,), DataType.INT32, quantization=scale)
        info = self._variables.fresh(info)
        self._network.add_constant(info, np.zeros(channels, np.int32))
        return info.name

    def _real(self, source: str) -> str:
        """Return the tensor with the real values of a tensor: itself, unless it is quantised."""
        info = self._network.info(source)
        if info.dtype.is_float:
            return source
        fresh = self._variables.fresh(TensorInfo(f"{source}_real", info.shape, DataType.FLOAT32))
        data = self._network.tensor(source).data
        if data is not None:
            return self._network.add_constant(fresh, real_values(info, data))
        self._insert(added(LayerType.DEQUANTIZE, [source], fresh))
        return fresh.name

    def _inferred(
        self, record: OperatorRecord, type_: LayerType, descriptor: Descriptor, sources: Sequence[str | None]
    ) -> list[TensorInfo]:
        """Return the outputs of an operator with the shapes that it infers."""
        shapes = KERNELS[type_].infer(descriptor, self._network.infos(sources))
        for index, shape in zip(record.outputs, shapes, strict=True):
            self._tensors.replace(index, replace(self._tensors.info(index), shape=shape), None)
        return [self._tensors.info(index) for index in record.outputs]

    def _append(self, record: OperatorRecord, layer: Layer, outputs: Sequence[TensorInfo]) -> None:
        """Add a layer whose inputs are in the network."""
        for unsigned, described in self._unsigned.layers(layer, outputs):
            self._insert(*with_layer_behind(self._network, unsigned, described, self._variables.fresh))
        self._available.update(record.outputs)

    def _insert(self, *added: Added) -> None:
        """Add layers whose inputs are in the network, or are outputs of layers before them."""
        for layer, infos in added:
            self._network.add_layer(layer, infos)
            check_kernel(self._network, layer)

    def _layer_source(self, node: Node, row: Row, position: int) -> str | None:
        """Return the network's tensor for an input of an operator; None for an absent optional one."""
        if position in row.optional and not node.has_input(position):
            return None
        index = node.record.inputs[position]
        if position not in row.state_inputs:
            return self._source(index)
        if self._variables.name(index) is not None:
            raise UnsupportedError(f"its input {position} is a variable that another operator keeps")
        return self._variables.old_value(index)

    def _stand_in(self, record: OperatorRecord) -> None:
        """Make the outputs of a refused operator readable, so that the operators behind it are checked, too."""
        for index in record.outputs:
            try:
                info = self._tensors.info(index)
            except FerruleError:
                self._lost.add(index)
                continue
            if not self._network.has_tensor(info.name):
                self._network.add_input(info)
            self._available.add(index)

    def _source(self, index: int) -> str:
        """Return the name of a tensor that is read; a constant is added to the network when it is first read.

        So are the layers that compute the tensor, if all that they read is constant.
        """
        info = self._tensors.info(index)
        known = self._variables.name(index)
        if known is not None:
            if self._tensors.record(index).is_variable:
                raise UnsupportedError(
                    f"tensor '{info.name}' is a variable that an operator keeps, and is read elsewhere"
                )
            return known
        if index not in self._available:
            self._append_deferred(index)
        if index not in self._available:
            if self._tensors.record(index).is_variable:
                raise UnsupportedError(f"tensor '{info.name}' is a variable, which this operator does not keep")
            if not self._tensors.is_constant(index):
                raise ModelError(f"tensor '{info.name}' is read before anything writes it")
            self._file.folded.spend(Resource.ELEMENTS, info.elements, f"checking the constants up to '{info.name}'")
            self._network.add_constant(info, self._tensors.data(index))
            self._available.add(index)
        return info.name

    def _append_deferred(self, index: int) -> None:
        for record, layer, reads in self._folding.layers(index):
            for source in reads:
                self._source(source)
            inputs = self._adapted(record, OPERATORS[layer.type], layer.name, layer.inputs)
            self._append(
                record, replace(layer, inputs=inputs), [self._tensors.info(output) for output in record.outputs]
            )

    def _where(self, record: OperatorRecord) -> str:
        custom = f" '{record.custom_code}'" if record.custom_code else ""
        outputs = [index for index in record.outputs if index in self._tensors]
        result = f" -> tensor '{self._tensors.record(outputs[0]).name}'" if outputs else ""
        return f"operator {record.index} {record.type}{custom}{result}"


def _layer_type(record: OperatorRecord) -> LayerType | None:
    if record.type == SELECT:
        return LayerType.SELECT_V2
    if record.type == "CUSTOM":
        return CUSTOM.get(record.custom_code)
    return LayerType.__members__.get(record.type)


def _is_known(record: OperatorRecord) -> bool:
    """Whether an operator is one that is read, so that it would be checked if its inputs had a description."""
    return record.type in VARIABLE_OPERATORS or record.type in FOLDS or _layer_type(record) in OPERATORS
