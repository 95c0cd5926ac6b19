# SPDX-License-Identifier: Apache-2.0
"""Random networks over all operators: layers of `layer_case`, joined by layers that convert types and shapes."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ferrule.errors import FerruleError
from ferrule.formats.tflite.operators import OPERATORS as ROWS
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, TensorInfo, reset_value
from ferrule.network import Network
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.operator import Operands
from ferrule.operators.table import BEYOND_TFLITE, OPERATORS
from ferrule.testing.backends.comparison import random_values
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case, placed
from ferrule.testing.backends.layers import refusal_of_reference

TYPES = tuple(type_ for type_ in LAYER_TYPES if type_ not in BEYOND_TFLITE)
"""The layer types that occur in files."""
INTEGERS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8, DataType.BOOL)
"""The element types of networks whose results must be exact."""
ALL_TYPES = (*INTEGERS, DataType.FLOAT32)
CALLS = (LayerType.IF, LayerType.WHILE)
_CONSTANT = frozenset({LayerType.DETECTION_POSTPROCESS})
"""Layers whose constants stay what they are: anchors of any size make boxes for which TensorFlow Lite Micro fails."""
_COMPUTED_CONSTANTS = 0.3
"""The part of the layers some of whose constants are computed, or are inputs."""
_MOST_ELEMENTS = 600
_MOST_COPIES = 9
_ATTEMPTS = 300
_OTHERS = tuple(each for each in DataType if each not in {*ALL_TYPES, DataType.FLOAT16})
"""Types to which no C kernel converts: tensors of these types are inputs of the network."""
_VARIABLES = (DataType.INT8, DataType.INT16, DataType.FLOAT32)
_QUANTIZED = (DataType.INT8, DataType.INT16, DataType.UINT8)


def composed_network(seed: int, index: int, *, layers: int = 8, integers: bool = False) -> Network:
    """Return a network with `layers` drawn layers and those that join them; the same for the same arguments.

    Consecutive indices of one seed take the layer types in turn, so `coverage_count` networks have all of them. With
    `integers`, no tensor is float32, and operators that need one are replaced by others.
    """
    dice = random.Random(f"composed {seed} {index} {layers} {integers}")
    types = [_type_at(seed, layers * index + offset) for offset in range(layers)]
    composer = _Composer(Network(f"composed_{seed}_{index}"), dice, INTEGERS if integers else ALL_TYPES)
    for type_ in types:
        composer.grow(type_)
    composer.finish()
    return composer.network


def coverage_count(layers: int = 8) -> int:
    """Return the number of consecutive networks that have all layer types."""
    return -(-len(TYPES) // layers) + 1


def types_of(graph: Graph) -> Iterator[LayerType]:
    """Yield the types of all layers, and of those of the graphs that they run."""
    for layer in graph.layers:
        yield layer.type
        for inner in layer.descriptor.graphs.values():
            yield from types_of(inner)


def _type_at(seed: int, position: int) -> LayerType:
    turn, place = divmod(position, len(TYPES))
    order = list(TYPES)
    random.Random(f"order {seed} {turn}").shuffle(order)
    return order[place]


class _Composer:
    """A network under construction."""

    def __init__(
        self, network: Network, dice: random.Random, types: Collection[DataType], *, inner: bool = False
    ) -> None:
        """`inner` is set for a graph that a layer calls: it has no states, and its inputs are given."""
        self.network = network
        self._dice = dice
        self._types = types
        self._inner = inner
        self._pool: list[str] = [info.name for info in network.inputs]
        self._unread = set[str]()
        self._variables: list[str] = []
        if not inner and dice.random() < 0.3:
            self._add_variable()

    def grow(self, type_: LayerType) -> None:
        """Add a layer of the type with layers that give it its inputs; of another type if it has none of the types."""
        if type_ in CALLS and self._pool and not self._inner and self._dice.random() < 0.7:
            self._add_if() if type_ is LayerType.IF else self._add_while()
            return
        part = self._drawn(type_) or next(filter(None, map(self._drawn, self._dice.choices(TYPES, k=_ATTEMPTS))))
        (layer,) = part.layers
        if self._inner and not all(map(self._near, part.inputs)):
            return  # a called graph has no further inputs, and a layer of constants only is no layer when it is read
        number = len(self.network.layers)
        names: dict[str, str] = {}
        states: list[str] = []
        for position, name in enumerate(layer.inputs):
            if name is None or name in names:
                continue
            tensor = part.tensor(name)
            info = replace(_plain(tensor.info), name=self.network.unique_name(f"{name}_{number}"))
            if tensor.data is not None:
                names[name] = self.network.add_constant(info, tensor.data)
            elif position in state_positions(part, layer):
                names[name] = self.network.add_state(info, reset_value(info))
                states.append(info.name)
            else:
                names[name] = self._input(info)
        name = self.network.unique_name(f"{layer.type.lower()}_{len(self.network.layers)}")
        inputs = tuple(None if each is None else names[each] for each in layer.inputs)
        count = len(layer.outputs) - len(states)
        outputs = tuple(f"{name}_{index}" for index in range(count)) if count > 1 else (name,)
        outputs += tuple(f"{state}_next" for state in states)
        infos = [replace(info, name=own) for info, own in zip(part.output_infos(layer), outputs, strict=True)]
        self.network.add_layer(replace(layer, name=name, inputs=inputs, outputs=outputs), infos)
        for state in states:
            self.network.set_state(state, f"{state}_next")
        self._add(outputs[:count])

    def finish(self) -> None:
        """Give the variables new values, and declare the outputs: what no layer reads, and some other tensors."""
        for name in self._variables:
            found = self._converted(self.network.info(name))
            self.network.set_state(name, found or self._dice.choice([*self._same(name), name]))
        written = [name for name in self._pool if self._is_written(name)]
        results = [name for name in written if name in self._unread or self._dice.random() < 0.1]
        self._dice.shuffle(results)
        self.network.set_outputs(results or written[-1:])

    def close(self, infos: Sequence[TensorInfo]) -> Network:
        """Declare outputs like `infos`, computed where possible, and return the finished graph."""
        results: list[str] = []
        for info in infos:
            found = self._converted(info)
            if found is None or found in results:
                name = self.network.unique_name("fixed")
                found = self.network.add_constant(replace(info, name=name), _values(self._dice, info))
            results.append(found)
        self.network.set_outputs(results)
        return self.network

    def _is_written(self, name: str) -> bool:
        return any(name in layer.outputs for layer in self.network.layers)

    def _same(self, name: str) -> list[str]:
        wanted = self.network.info(name)
        infos = [self.network.info(each) for each in self._pool]
        return [info.name for info in infos if (info.shape, info.dtype) == (wanted.shape, wanted.dtype)]

    def _add(self, names: Sequence[str]) -> None:
        for name in names:
            info = self.network.info(name)
            self._unread.add(name)
            if info.dtype in self._types and 0 < info.elements <= _MOST_ELEMENTS:
                self._pool.append(name)

    def _drawn(self, type_: LayerType) -> Graph | None:
        """Return a valid graph of one layer with tensors of the wanted types; None if none was found."""
        if self._inner and type_ in CALLS:
            return None
        for attempt in range(_ATTEMPTS):
            dtype = self._dice.choice([*self._types, *_OTHERS]) if attempt else DataType.INT8
            graph = layer_case(type_, dtype, self._dice.randrange(10**6))
            if type_ not in _CONSTANT and self._dice.random() < _COMPUTED_CONSTANTS:
                own = [name for name in graph.layers[0].present_inputs if graph.tensor(name).is_constant]
                graph = placed(graph, {name for name in own if self._dice.random() < 0.5})
            infos = [graph.info(name) for name in (*graph.layers[0].present_inputs, *graph.layers[0].outputs)]
            allowed = (*self._types, *_OTHERS)
            held = {tensor.info.name for tensor in graph.tensors if tensor.data is not None}
            if any(info.name not in held and info.dtype not in allowed for info in infos):
                continue
            if self._has_no_c(graph) or refusal_of_reference(graph):
                continue
            if self._inner and state_positions(graph, graph.layers[0]):
                return None
            if all(info.elements <= _MOST_ELEMENTS for info in infos):
                return graph
        return None

    def _has_no_c(self, graph: Graph) -> bool:
        """Whether only numpy computes the layer."""
        infos = [*graph.inputs, *graph.outputs]
        return graph.layers[0].type is LayerType.CAST and any(info.dtype in _OTHERS for info in infos)

    def _input(self, info: TensorInfo) -> str:
        """Return a tensor of the network like `info`: a computed one, or a new input of the network."""
        computed = self._inner or (bool(self.network.inputs) and self._dice.random() < 0.8)
        found = self._converted(info) if computed else None
        if found is not None:
            return found
        if info.shape:
            return self.network.add_input(info)
        source = self.network.add_input(replace(info, name=f"{info.name}_row", shape=(1,)))  # samples have an axis
        return self.network.add_reshape_layer(source, (), name=info.name)

    def _converted(self, info: TensorInfo) -> str | None:
        """Return a tensor of the pool with the type, quantisation and shape, after layers that change them."""
        near = self._near(info)
        if not near:
            return None
        same = [each for each in near if self.network.info(each).dtype is info.dtype]
        source = self._dice.choice(same[-8:] if same and self._dice.random() < 0.7 else near[-8:])
        try:
            found = self._typed(self._shaped(source, info), info)
        except FerruleError as error:
            raise AssertionError(f"{self.network.info(source)} cannot be converted to {info}") from error
        self._unread.discard(source)
        return found

    def _near(self, info: TensorInfo) -> list[str]:
        """Return the tensors of the pool that can be converted."""
        if info.dtype in _OTHERS or not info.elements:
            return []
        return [each for each in self._pool if -(-info.elements // self.network.info(each).elements) <= _MOST_COPIES]

    def _shaped(self, source: str, info: TensorInfo) -> str:
        network, have, want = self.network, self.network.info(source).elements, info.elements
        if have != want:
            source = network.add_reshape_layer(source, (have,))
            if have < want:
                source = network.add_concatenation_layer([source] * -(-want // have), 0)
            if network.info(source).elements > want:
                source = network.add_slice_layer(source, [0], [want])
        return source if network.info(source).shape == info.shape else network.add_reshape_layer(source, info.shape)

    def _typed(self, source: str, info: TensorInfo) -> str:
        network, found = self.network, self.network.info(source)
        if (found.dtype, found.quantization) == (info.dtype, info.quantization):
            return source
        if info.dtype is DataType.FLOAT32 and found.quantization is not None and found.dtype in _QUANTIZED:
            return network.add_dequantize_layer(source)
        if found.dtype is info.dtype:
            return self._requantized(source, info)
        if info.quantization is not None and info.dtype in _QUANTIZED:
            return self._requantized(source, info)
        return self._layer(LayerType.CAST, source, info)

    def _requantized(self, source: str, info: TensorInfo) -> str:
        """Add QUANTIZE if there is such a kernel, else CAST or, between equal types, a RESHAPE of the stored values."""
        with_scale = self.network.info(source).quantization is not None or self.network.info(source).dtype.is_float
        if info.quantization is not None and with_scale:
            try:
                return self._layer(LayerType.QUANTIZE, source, info)
            except FerruleError:
                pass
        type_ = LayerType.RESHAPE if self.network.info(source).dtype is info.dtype else LayerType.CAST
        return self._layer(type_, source, info)

    def _layer(self, type_: LayerType, source: str, info: TensorInfo) -> str:
        """Add a layer with one input whose output is like `info`."""
        network, row = self.network, OPERATORS[type_]
        name = network.unique_name(f"{type_.lower()}_{len(network.layers)}")
        descriptor = ReshapeDescriptor(shape=info.shape) if type_ is LayerType.RESHAPE else row.descriptor()
        output = replace(info, name=f"{name}_out")
        row.check(descriptor, Operands((network.info(source),), (output,)))
        layer = Layer(name, type_, descriptor, inputs=(source,), outputs=(output.name,))
        return network.add_layer(layer, [output])[0]

    def _add_variable(self) -> None:
        dtype = self._dice.choice([each for each in _VARIABLES if each in self._types])
        source = layer_case(LayerType.RESHAPE, dtype, self._dice.randrange(10**6)).inputs[0]
        info = replace(source, name="variable")
        self._variables.append(self.network.add_state(info, _values(self._dice, info)))
        self._pool.append(info.name)

    def _add_if(self) -> None:
        """Add an IF whose branches have random layers."""
        condition = TensorInfo(self.network.unique_name("condition"), self._dice.choice([(), (1,)]), DataType.BOOL)
        names = [self._input(condition), *self._chosen()]
        sources = [self.network.info(name) for name in names[1:]]
        results = sources[: self._dice.randint(1, len(sources))]
        branches = [self._branch(name, sources).close(results) for name in ("then", "else")]
        self._add(self.network.add_if_layer(names[0], names[1:], *branches))

    def _add_while(self) -> None:
        """Add a WHILE whose body has random layers; it ends at the first false one of some flags."""
        count = self._dice.randint(2, 4)
        flags = TensorInfo(self.network.unique_name("flags"), (count,), DataType.BOOL)
        names = [self._input(flags), *self._chosen()]
        sources = [self.network.info(name) for name in names]
        condition = Network("condition")
        for index, info in enumerate(sources):
            condition.add_input(replace(info, name=f"x{index}"))
        condition.set_outputs([condition.add_slice_layer("x0", [0], [1])])
        body = self._branch("body", sources)
        end = body.network.add_constant(TensorInfo("end", (1,), DataType.BOOL), np.zeros(1, np.bool_))
        rest = body.network.add_slice_layer("x0", [1], [count - 1])
        shifted = body.network.add_concatenation_layer([rest, end], 0)
        graph = body.close(sources[1:])
        graph.set_outputs([shifted, *(info.name for info in graph.outputs)])
        self._add(self.network.add_while_layer(names, condition, graph)[1:])

    def _chosen(self) -> list[str]:
        return self._dice.sample(self._pool, min(len(self._pool), self._dice.randint(1, 2)))

    def _branch(self, name: str, sources: Sequence[TensorInfo]) -> _Composer:
        """Return a graph with these inputs and random layers of integers, whose results are thus exact."""
        graph = Network(name)
        for index, info in enumerate(sources):
            graph.add_input(replace(info, name=f"x{index}"))
        inner = _Composer(graph, self._dice, INTEGERS, inner=True)
        if any(info.dtype not in _OTHERS for info in sources):
            for _ in range(self._dice.randint(1, 3)):
                inner.grow(self._dice.choice(TYPES))
        return inner


def state_positions(graph: Graph, layer: Layer) -> range | tuple[int, ...]:
    """Return the positions of a layer's inputs that an interpreter keeps from run to run; the last outputs are new."""
    row = ROWS.get(layer.type)
    if row is None:
        return ()
    count = len(OPERATORS[layer.type].states(layer.descriptor, Operands.of(graph, layer)))
    return row.state_inputs or range(len(layer.inputs) - count, len(layer.inputs))


def _plain(info: TensorInfo) -> TensorInfo:
    """Return the info as it is read from a file: the axis of a single scale is 0."""
    if info.quantization is None or info.quantization.per_channel:
        return info
    return replace(info, quantization=replace(info.quantization, axis=0))


def _values(dice: random.Random, info: TensorInfo) -> Array:
    return random_values(np.random.default_rng(dice.getrandbits(32)), info)
