# SPDX-License-Identifier: Apache-2.0
"""The layers of a network of integers that compute in float32: what they cost, why they do so, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.codegen import Artifact
from ferrule.codegen.artifact import OperatorRecord
from ferrule.firmware import PlannedTime
from ferrule.graph import DataType, Graph, Layer, LayerType, Quantization, TensorInfo
from ferrule.interface import spelled
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS
from ferrule.report.explaining import estimated_instructions
from ferrule.report.sections import Column, Part, Table, Text, joined, names, numbers, part, plural
from ferrule.timing.energy import digits_text

_CONVERSIONS = frozenset({LayerType.QUANTIZE, LayerType.DEQUANTIZE})
_PROBE = Quantization.of(1 / 64)
"""A quantisation that each integer kernel takes which takes any."""


@frozen
class FloatIslandPart:
    """Neighbouring layers of the firmware that compute in float32, with the conversions at their ends."""

    layers: tuple[str, ...]
    """In the order of execution, without the conversions."""
    place: str
    """"between integers", "before integers", "behind integers", or "beside integers" if no tensor connects them."""
    instructions: int | None
    """The estimate for one inference, with that of the conversions; null if a kernel states none."""
    cycles: int | None
    """Planned for one inference, with the conversions; null if the core has no table of its kernels' cycles."""
    milliseconds: float | None
    """These, at the board's clock."""
    ram_bytes: int
    """The most bytes that their float32 tensors take at a time."""
    reasons: tuple[str, ...]
    """Why the layers compute in float32, each with the layers that it is true of."""
    advice: str
    """What would help, or why nothing does."""


def float_islands(
    graph: Graph, records: Iterable[OperatorRecord], times: Mapping[str, tuple[int, float]]
) -> tuple[FloatIslandPart, ...]:
    """Return the islands of a graph of a firmware, in the order of execution; none if it has no integer layer.

    `times` has the planned cycles and milliseconds by layer; it is empty if they are unknown.
    """
    if not any(_is_integer(graph, layer) for layer in graph.layers):
        return ()
    known = {record.layer: record for record in records}
    return tuple(_described(graph, group, known, times) for group in _groups(graph))


def islands_of(artifact: Artifact, planned: PlannedTime | None) -> tuple[FloatIslandPart, ...]:
    """Return the islands of a firmware, with what they take of its planned time if that is known."""
    layers = () if planned is None else planned.layers
    times = {each.layer: (each.cycles, each.milliseconds) for each in layers}
    return float_islands(artifact.graph, artifact.operators, times)


def islands_section(islands: tuple[FloatIslandPart, ...]) -> Part | None:
    """Return the islands with their costs, and what would help; None if there are none."""
    if not islands:
        return None
    timed = any(each.cycles is not None for each in islands)
    table = Table(
        "layers in float32 beside integers: estimates of one inference",
        (
            *names("layers"),
            Column("place", below="layers"),
            *numbers("instructions", spare=2),
            *((*numbers("cycles", spare=1), *numbers("ms")) if timed else ()),
            *numbers("RAM, B"),
            "why",
        ),
        [
            (
                joined(*each.layers),
                each.place,
                each.instructions,
                *(
                    (each.cycles, None if each.milliseconds is None else digits_text(each.milliseconds, 4))
                    if timed
                    else ()
                ),
                each.ram_bytes,
                "\n".join(each.reasons),
            )
            for each in islands
        ],
    )
    advice = [f"{each.layers[0]}: {each.advice}" for each in islands]
    return part("Float islands", table, Text(plural(len(islands), "part"), "in float32", items=tuple(advice)))


def _is_integer(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer computes with quantised integers."""
    return layer.type not in _CONVERSIONS and any(
        graph.info(name).quantization is not None for name in (*layer.present_inputs, *layer.outputs)
    )


def _computes_reals(graph: Graph, layer: Layer) -> bool:
    tensors = (*layer.present_inputs, *layer.outputs)
    return layer.type not in _CONVERSIONS and any(graph.info(name).dtype is DataType.FLOAT32 for name in tensors)


def _groups(graph: Graph) -> Iterator[list[Layer]]:
    """Yield the layers in float32 that tensors of float32 connect, group by group."""
    reals = {layer.name: layer for layer in graph.layers if _computes_reals(graph, layer)}
    while reals:
        waiting, found = [next(iter(reals.values()))], set[str]()
        while waiting:
            layer = waiting.pop()
            if layer.name not in reals:
                continue
            found.add(layer.name)
            del reals[layer.name]
            makers = map(graph.producer, layer.present_inputs)
            waiting += [maker for maker in makers if maker is not None]
            waiting += [reader for name in layer.outputs for reader in graph.consumers(name)]
        yield [layer for layer in graph.layers if layer.name in found]


def _described(
    graph: Graph, group: list[Layer], records: Mapping[str, OperatorRecord], times: Mapping[str, tuple[int, float]]
) -> FloatIslandPart:
    makers = {maker.name: maker for layer in group for maker in map(graph.producer, layer.present_inputs) if maker}
    readers = {each.name: each for layer in group for name in layer.outputs for each in graph.consumers(name)}
    before = [maker for maker in makers.values() if maker.type is LayerType.DEQUANTIZE]
    behind = [reader for reader in readers.values() if reader.type is LayerType.QUANTIZE]
    whole = [each.name for each in (*before, *group, *behind) if each.name in records]
    estimates = [estimated_instructions(records[name]) for name in whole]
    planned = [times[name] for name in whole if name in times]
    reasons, helpful = _reasons(graph, group)
    return FloatIslandPart(
        layers=tuple(layer.name for layer in group),
        place=_place(bool(before), bool(behind)),
        instructions=None if None in estimates else sum(each or 0 for each in estimates),
        cycles=sum(cycles for cycles, _ in planned) if times else None,
        milliseconds=sum(duration for _, duration in planned) if times else None,
        ram_bytes=_peak(graph, group, before),
        reasons=reasons,
        advice=helpful,
    )


def _place(before: bool, behind: bool) -> str:
    if before and behind:
        return "between integers"
    return "behind integers" if before else "before integers" if behind else "beside integers"


def _peak(graph: Graph, group: list[Layer], before: list[Layer]) -> int:
    """Return the most bytes of float32 tensors of a group that are alive at a time, in the order of the layers."""
    positions = {layer.name: place for place, layer in enumerate(graph.layers)}
    lives: dict[str, tuple[int, int]] = {}
    for layer in (*before, *group):
        for name in (*layer.present_inputs, *layer.outputs):
            tensor = graph.tensor(name)
            if tensor.data is None and tensor.info.dtype is DataType.FLOAT32:
                maker = graph.producer(name)
                first = -1 if maker is None else positions[maker.name]
                last = max((positions[each.name] for each in graph.consumers(name)), default=len(positions))
                lives[name] = first, last
    steps = {step for first, last in lives.values() for step in (first, last)}
    return max(
        (
            sum(graph.info(name).size_bytes for name, (first, last) in lives.items() if first <= step <= last)
            for step in steps
        ),
        default=0,
    )


def _reasons(graph: Graph, group: list[Layer]) -> tuple[tuple[str, ...], str]:
    """Return why layers compute in float32, by layer or type, and what would help.

    Layers that only move elements follow the others.
    """
    computing = [layer for layer in group if not OPERATORS[layer.type].moves]
    if not computing:
        return ("they move elements in float32",), "an input or output of the model in integers"
    lacking = dict.fromkeys(str(layer.type) for layer in computing if not _has_integers(graph, layer))
    reasons = [f"{type_} has no integer kernel" for type_ in lacking]
    others = [layer for layer in computing if str(layer.type) not in lacking]
    reasons += [f"{layer.name}: {_unquantised(graph, layer)}" for layer in others]
    if others and not lacking:
        advice = "quantise the float32 model: `ferrule quantize` makes integers of all these layers"
    elif others:
        advice = (
            f"`ferrule quantize` of the float32 model makes integers of all but {joined(*lacking)}, "
            "for which the model needs another operator"
        )
    else:
        advice = "nothing but another operator in the model"
    return tuple(reasons), spelled(advice)


def _has_integers(graph: Graph, layer: Layer) -> bool:
    """Return whether the operator of a layer has a kernel for int8 or int16 by TFLM's rule."""
    operator = OPERATORS[layer.type]
    if operator.weighted:
        return True

    def stored(info: TensorInfo, dtype: DataType, prescribed: Quantization) -> TensorInfo:
        return info if info.dtype is not DataType.FLOAT32 else replace(info, dtype=dtype, quantization=prescribed)

    for dtype in (DataType.INT8, DataType.INT16):
        inputs = [None if name is None else stored(graph.info(name), dtype, _PROBE) for name in layer.inputs]
        quantization = operator.prescribed.get(dtype, _PROBE)
        outputs = [stored(graph.info(name), dtype, quantization) for name in layer.outputs]
        if operator.accepts(layer.descriptor, Operands(tuple(inputs), tuple(outputs))):
            return True
    return False


def _unquantised(graph: Graph, layer: Layer) -> str:
    """Return which conversions a layer lacks round it, or that there are all."""
    for name in layer.present_inputs:
        tensor, maker = graph.tensor(name), graph.producer(name)
        if tensor.data is None and tensor.info.dtype is DataType.FLOAT32 and maker is None:
            return f"its input '{name}' is an input of the model in float32"
    for name in layer.outputs:
        readers = graph.consumers(name)
        kinds = {graph.info(each.outputs[0]).quantization for each in readers if each.type is LayerType.QUANTIZE}
        if len(kinds) > 1:
            return f"its result '{name}' is quantised with {len(kinds)} scales"
        if kinds and len(readers) > 1:
            return f"its result '{name}' is quantised, and read in float32 too"
        if not kinds:
            return f"nothing quantises its result '{name}'"
    if any(
        (maker := graph.producer(name)) is None or maker.type is not LayerType.DEQUANTIZE
        for name in layer.present_inputs
        if graph.tensor(name).data is None
    ):
        return "what it reads is not quantised"
    return "no integer kernel has the rule of the model's format, or takes its weights"
