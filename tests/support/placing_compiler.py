# SPDX-License-Identifier: Apache-2.0
"""A made-up compiler whose programs find their tensors at fixed places in scratch, and random graphs of such programs.

A program adds up its inputs byte by byte. It reads all of them, then overwrites the whole scratch with garbage except
the inputs that it preserves, and writes its outputs last: the worst that a program may do. Programs run on the host.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends import BackendId, PreCompiledDescriptor
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext, Overlap, PlacedTensor, Scratch
from ferrule.backends.target import Face, default_target
from ferrule.codegen import Artifact, Plan, generate
from ferrule.dom import Call, Evaluate, Identifier, Integer, Statement
from ferrule.graph import DataType, Graph, Layer, LayerType, TensorInfo
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.resources import root

HEADER = """
#include <stdint.h>
#include <string.h>
static uint8_t sums[4][4096];
static struct { uint8_t *place; uint32_t size; int preserved; } inputs[8];
static uint32_t input_count;
static inline void program_input(const void *place, uint32_t size, int preserved)
{
    inputs[input_count].place = (uint8_t *)(uintptr_t)place;
    inputs[input_count].size = size;
    inputs[input_count].preserved = preserved;
    ++input_count;
}
static inline void program_sum(uint32_t output, uint32_t size, uint32_t key)
{
    for (uint32_t i = 0; i < size; ++i) {
        uint32_t sum = key + 7U * output + i;
        for (uint32_t j = 0; j < input_count; ++j) {
            sum += (j + 1U) * inputs[j].place[i % inputs[j].size];
        }
        sums[output][i] = (uint8_t)sum;
    }
}
static inline void program_scribble(uint8_t *scratch, uint32_t size)
{
    for (uint32_t i = 0; i < size; ++i) {
        int kept = 0;
        for (uint32_t j = 0; j < input_count; ++j) {
            const uint8_t *from = inputs[j].place;
            if (inputs[j].preserved && &scratch[i] >= from && &scratch[i] < from + inputs[j].size) {
                kept = 1;
            }
        }
        if (!kept) {
            scratch[i] = (uint8_t)(0xa5U + i);
        }
    }
    input_count = 0U;
}
static inline void program_fill(void *scratch, uint32_t size)
{
    memset(scratch, 0x3c, size);
}
static inline void program_output(void *place, uint32_t output, uint32_t size)
{
    memcpy(place, sums[output], size);
}
static inline void program_elementwise(const void *from, void *to, uint32_t size)
{
    for (uint32_t i = 0; i < size; ++i) {
        ((uint8_t *)to)[i] = (uint8_t)(((const uint8_t *)from)[i] * 3U + 1U);
    }
}
"""
PLACING = BackendId("Placing")


@frozen
class Program:
    """The payload of a layer: what the made-up compiler decided."""

    scratch_bytes: int
    key: int
    placed: tuple[PlacedTensor, ...]
    alignment: int = 16
    more: tuple[Scratch, ...] = ()

    def run(self, inputs: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """Return the outputs, of these sizes, as numpy computes them."""
        found = []
        for output, size in enumerate(sizes):
            total = np.arange(size, dtype=np.uint64) + self.key + 7 * output
            for number, data in enumerate(inputs):
                total += np.resize(np.frombuffer(data, np.uint8), size).astype(np.uint64) * (number + 1)
            found.append(total.astype(np.uint8).tobytes())
        return found


class PlacingTarget:
    """Lowers programs, views, and an element-wise layer of the core that may run in place."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return a layer as calls of the functions in `HEADER`."""
        layer = context.layer
        if layer.type is LayerType.RESHAPE:
            return LoweredOp(kernel="reshape", view_of=layer.inputs[0])
        assert isinstance(layer.descriptor, PreCompiledDescriptor)
        program = layer.descriptor.payload
        if program == "elementwise":
            size = _size(context, layer.outputs[0])
            arguments = (context.input_pointer(0), context.output_pointer(), size)
            return LoweredOp(
                kernel="elementwise",
                statements=(_call("program_elementwise", *arguments),),
                overlaps=(Overlap(output=layer.outputs[0], input=str(layer.inputs[0]), distance_bytes=0),),
                headers=("placing.h",),
            )
        assert isinstance(program, Program)
        return LoweredOp(
            kernel="program",
            statements=tuple(_statements(context, program)),
            scratch_bytes=program.scratch_bytes,
            scratch_alignment=program.alignment,
            placed=program.placed,
            scratches=program.more,
            headers=("placing.h",),
        )


def _statements(context: LoweringContext, program: Program) -> list[Statement]:
    placed = {each.tensor: each for each in program.placed}

    def place(tensor: str) -> Any:  # noqa: ANN401 an expression of any kind
        return (
            Call(Identifier("PLACE"), (context.scratch, Integer(placed[tensor].offset)))
            if tensor in placed
            else context.pointer(tensor)
        )

    layer = context.layer
    inputs = [
        _call(
            "program_input", place(name), _size(context, name), Integer(int(name in placed and placed[name].preserved))
        )
        for name in layer.present_inputs
    ]
    sums = [
        _call("program_sum", _number(index), _size(context, name), _number(program.key))
        for index, name in enumerate(layer.outputs)
    ]
    scribble = _call("program_scribble", context.scratch, _number(program.scratch_bytes))
    outputs = [
        _call("program_output", place(name), _number(index), _size(context, name))
        for index, name in enumerate(layer.outputs)
    ]
    more = [_call("program_fill", context.scratch_of(each), _number(each.size_bytes)) for each in program.more]
    return [*inputs, *sums, *more, scribble, *outputs]


def _call(name: str, *arguments: Any) -> Evaluate:  # noqa: ANN401 expressions
    return Evaluate(Call(Identifier(name), arguments))


def _number(value: int) -> Integer:
    return Integer(value, unsigned=True)


def _size(context: LoweringContext, tensor: str) -> Integer:
    return _number(context.graph.info(tensor).size_bytes)


# ---- graphs


def tensor(name: str, elements: int, dtype: DataType = DataType.INT8) -> TensorInfo:
    return TensorInfo(name, (elements,), dtype)


def add_program(
    graph: Graph, name: str, inputs: Sequence[str], outputs: Sequence[TensorInfo], program: object
) -> tuple[str, ...]:
    """Add a layer; `program` is a Program, or "elementwise" for the layer of the core."""
    layer = Layer(
        name,
        LayerType.PRE_COMPILED,
        PreCompiledDescriptor(payload=program),
        inputs=tuple(inputs),
        outputs=tuple(info.name for info in outputs),
    )
    return graph.add_layer(layer, list(outputs))


def add_view(graph: Graph, source: str, name: str) -> str:
    info = graph.info(source)
    layer = Layer(
        f"view_{name}",
        LayerType.RESHAPE,
        ReshapeDescriptor(shape=(1, *info.shape)),
        inputs=(source,),
        outputs=(name,),
    )
    return graph.add_layer(layer, [replace(info, name=name, shape=(1, *info.shape))])[0]


def random_graph(seed: int) -> Graph:
    """Return a graph of programs, views and element-wise layers; its tensors are placed as a compiler might do it."""
    dice = random.Random(seed)
    graph = Graph(f"placed {seed}")
    known = [graph.add_input(tensor(f"x{n}", dice.randint(1, 12), _dtype(dice))) for n in range(dice.randint(1, 3))]
    for number in range(dice.randint(1, 6)):
        kind = dice.random()
        if kind < 0.15:
            known.append(add_view(graph, dice.choice(known), f"v{number}"))
        elif kind < 0.3:
            source = dice.choice(known)
            made = replace(graph.info(source), name=f"e{number}")
            known += add_program(graph, f"elementwise_{number}", [source], [made], "elementwise")
        else:
            inputs = dice.sample(known, min(len(known), dice.randint(1, 3)))
            outputs = [tensor(f"t{number}_{n}", dice.randint(1, 12), _dtype(dice)) for n in range(dice.randint(1, 2))]
            program = _program(dice, [graph.info(name) for name in inputs], outputs)
            known += add_program(graph, f"program_{number}", inputs, outputs, program)
    unread = [name for name in known if not graph.consumers(name) and graph.producer(name) is not None]
    graph.set_outputs(sorted({*unread, dice.choice(known)}))
    return graph


def _dtype(dice: random.Random) -> DataType:
    return dice.choice((DataType.INT8, DataType.INT8, DataType.INT16, DataType.INT32))


def _program(dice: random.Random, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Program:
    placed: list[PlacedTensor] = []
    scratch = dice.choice((16, 40, 96))
    for infos, is_input in ((inputs, True), (outputs, False)):
        taken: list[tuple[int, int]] = [
            (each.offset, each.offset + info.size_bytes)
            for each in placed
            for info in inputs
            if each.preserved and info.name == each.tensor
        ]
        for info in infos:
            grain = dice.choice((16, 16, info.dtype.size_bytes))
            offset = dice.randrange(0, 8) * grain
            end = offset + info.size_bytes
            if dice.random() < 0.15 or any(offset < high and low < end for low, high in taken):
                continue
            taken.append((offset, end))
            scratch = max(scratch, end)
            placed.append(PlacedTensor(tensor=info.name, offset=offset, preserved=is_input and dice.random() < 0.3))
    return Program(
        scratch_bytes=scratch, key=dice.randrange(256), placed=tuple(placed), alignment=dice.choice((8, 16, 16))
    )


def evaluate(graph: Graph, inputs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the bytes of the graph's outputs."""
    values = dict(inputs)
    for layer in graph.layers:
        given = [values[name] for name in layer.present_inputs]
        sizes = [graph.info(name).size_bytes for name in layer.outputs]
        if layer.type is LayerType.RESHAPE:
            made = given
        elif isinstance(layer.descriptor, PreCompiledDescriptor) and isinstance(layer.descriptor.payload, Program):
            made = layer.descriptor.payload.run(given, sizes)
        else:
            made = [(np.frombuffer(given[0], np.uint8) * np.uint8(3) + np.uint8(1)).tobytes()]
        values.update(zip(layer.outputs, made, strict=True))
    return {info.name: values[info.name] for info in graph.outputs}


# ---- the C


def emit(graph: Graph, target: FirmwareTarget | None = None, **options: Any) -> Artifact:  # noqa: ANN401
    """Return the C of a graph; `options` are other fields of the plan."""
    names = [layer.name for layer in graph.layers]
    return generate(
        Plan(
            graph=graph,
            firmware=dict.fromkeys(names, PlacingTarget() if target is None else target),
            targets=dict.fromkeys(names, default_target(PLACING, Face.FIRMWARE)),
            **{"workspace_bytes": 1 << 16, **options},
        )
    )


class Programs:
    """Generated models in one library of the host."""

    def __init__(self, artifacts: Sequence[Artifact], folder: Path, cc: tuple[str, ...]) -> None:
        import cffi

        self._ffi = cffi.FFI()
        (folder / "placing.h").write_text(HEADER + "#define PLACE(scratch, offset) ((uint8_t *)(scratch) + (offset))\n")
        sources = []
        self._ffi.cdef("struct ferrule_run_info;")
        for artifact in artifacts:
            for name, text in artifact.files.items():
                (folder / name).write_text(text)
            prefix = f"ferrule_{artifact.symbol}"
            sources += [str(folder / f"{prefix}.c"), str(folder / f"{prefix}_weights.c")]
            self._ffi.cdef(_declarations(artifact, prefix))
        subprocess.run(
            [
                *cc, "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wno-unused-function", "-Wno-unused-variable",
                "-Werror", "-shared", "-fPIC", "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{folder}",
                f"-I{root() / 'include'}", *sources, "-o", str(folder / "models.so"),
            ],
            check=True,
        )  # fmt: skip
        self._library = self._ffi.dlopen(str(folder / "models.so"))

    def run(self, artifact: Artifact, inputs: Mapping[str, bytes], *, apart: bool) -> dict[str, bytes]:
        """Return the outputs of one run: with `apart`, tensors are in memory of the caller, else in the workspace."""
        prefix, ffi, graph = f"ferrule_{artifact.symbol}", self._ffi, artifact.graph
        memory = ffi.new(f"struct {prefix}_memory *")
        kept = []
        for region in artifact.storage.arenas:
            size = artifact.storage.plan.region(region.name).peak_bytes
            kept.append(ffi.new("uint8_t[]", b"\xee" * (size + 32)))
            setattr(memory, region.name, kept[-1] + -int(ffi.cast("uintptr_t", kept[-1])) % 16)
            setattr(memory, f"{region.name}_bytes", size)
        start = memory.sram
        self.memory = {
            region.name: ffi.buffer(getattr(memory, region.name), getattr(memory, f"{region.name}_bytes"))
            for region in artifact.storage.arenas
        }
        """What is in each arena, after the run."""

        def place(name: str) -> Any:  # noqa: ANN401 cffi has no types
            if not apart:
                return ffi.cast("void *", start + artifact.storage.offset(name))
            kept.append(ffi.new("int64_t[]", graph.info(name).size_bytes // 8 + 1))
            return ffi.cast("void *", kept[-1])

        sources = [place(info.name) for info in graph.inputs]
        targets = [place(info.name) for info in graph.outputs]
        for info, source in zip(graph.inputs, sources, strict=True):
            ffi.memmove(source, inputs[info.name], info.size_bytes)
        given = ffi.new(f"struct {prefix}_inputs *", {f"f{n}": source for n, source in enumerate(sources)})
        made = ffi.new(f"struct {prefix}_outputs *", {f"f{n}": target for n, target in enumerate(targets)})
        status = getattr(self._library, f"{prefix}_run")(given, made, memory, ffi.NULL)
        assert status == 0
        if apart:
            for info, source in zip(graph.inputs, sources, strict=True):
                assert bytes(ffi.buffer(source, info.size_bytes)) == inputs[info.name]
        return {
            info.name: bytes(ffi.buffer(target, info.size_bytes))
            for info, target in zip(graph.outputs, targets, strict=True)
        }


def _declarations(artifact: Artifact, prefix: str) -> str:
    inputs = "".join(f"const void *f{n};" for n in range(len(artifact.graph.inputs)))
    outputs = "".join(f"void *f{n};" for n in range(len(artifact.graph.outputs)))
    memory = "".join(f"uint8_t *{region.name}; size_t {region.name}_bytes;" for region in artifact.storage.arenas)
    return f"""
        struct {prefix}_inputs {{ {inputs} }};
        struct {prefix}_outputs {{ {outputs} }};
        struct {prefix}_memory {{ {memory} }};
        int32_t {prefix}_run(const struct {prefix}_inputs *, const struct {prefix}_outputs *,
                             const struct {prefix}_memory *, struct ferrule_run_info *);
    """


def some_inputs(graph: Graph, seed: int) -> dict[str, bytes]:
    """Return random bytes for each input."""
    dice = random.Random(seed)
    return {info.name: dice.randbytes(info.size_bytes) for info in graph.inputs}
