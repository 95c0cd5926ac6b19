# SPDX-License-Identifier: Apache-2.0
"""Generated executors, compiled and run on the host with a backend defined in this test."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import ran

from ferrule.backends import BackendId
from ferrule.backends.firmware import LoweredOp, LoweringContext, Scratch, parameter_table
from ferrule.backends.target import Face, default_target
from ferrule.codegen import CORE, Artifact, Plan, generate, shared_region
from ferrule.codegen.storage import ARENA_ALIGNMENT
from ferrule.dom import Call, Evaluate, Identifier
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Graph, Layer, LayerType, Quantization, TensorInfo
from ferrule.memory import ArenaOverflowError
from ferrule.operators.elementwise.rectify import ReluDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.resources import root

HEADER = """
#include <stdint.h>
#include <string.h>
struct twice_params { int32_t elements; int32_t factor; };
static inline void twice(const struct twice_params *params, const int8_t *input, int8_t *output, void *scratch)
{
    memset(scratch, 0x5a, 24);
    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = (int8_t)(input[i] * params->factor);
    }
}
"""


@dataclass
class Target:
    """Multiplies its input by two; a RESHAPE is a view."""

    scratches: tuple[Scratch, ...]

    def lower(self, context: LoweringContext) -> LoweredOp:
        if context.layer.type is LayerType.RESHAPE:
            return LoweredOp(kernel="reshape", view_of=context.layer.inputs[0])
        variable, params = parameter_table(context, "twice_params", elements=context.operands.output.elements, factor=2)
        arguments = (params, context.input_pointer(0), context.output_pointer(), context.scratch)
        return LoweredOp(
            kernel="twice",
            statements=(Evaluate(Call(Identifier("twice"), arguments)),),
            declarations=(variable,),
            scratch_bytes=24,
            scratches=self.scratches,
            headers=("twice.h",),
        )


def tensor(name: str, *shape: int) -> TensorInfo:
    return TensorInfo(name, shape, DataType.INT8, quantization=Quantization.of(0.5))


def double(graph: Graph, source: str, target: str) -> str:
    layer = Layer(f"double_{target}", LayerType.RELU, ReluDescriptor(), inputs=(source,), outputs=(target,))
    return graph.add_layer(layer, [tensor(target, *graph.info(source).shape)])[0]


def reshape(graph: Graph, source: str, target: str, *shape: int) -> str:
    layer = Layer(
        f"reshape_{target}",
        LayerType.RESHAPE,
        ReshapeDescriptor(shape=shape),
        inputs=(source,),
        outputs=(target,),
    )
    return graph.add_layer(layer, [tensor(target, *shape)])[0]


def emit(graph: Graph, *, scratches: tuple[Scratch, ...] = (), **options: Any) -> Artifact:  # noqa: ANN401
    names = [layer.name for layer in graph.layers]
    return generate(
        Plan(
            graph=graph,
            firmware=dict.fromkeys(names, Target(scratches)),
            targets=dict.fromkeys(names, default_target(BackendId("Test"), Face.FIRMWARE)),
            **{"workspace_bytes": 1 << 16, **options},
        )
    )


@dataclass
class Host:
    """A generated model, loaded on the host."""

    ffi: Any
    library: Any
    symbol: str

    def run(self, **inputs: Array) -> int:
        """Fill the default inputs, run in the default workspace, and return the status."""
        given = getattr(self.library, f"{self.symbol}_default_inputs")
        for name, array in inputs.items():
            self.ffi.memmove(self.ffi.cast("int8_t *", getattr(given, name)), array.tobytes(), array.size)
        outputs = getattr(self.library, f"{self.symbol}_default_outputs")
        memory = getattr(self.library, f"{self.symbol}_default_memory")
        run = getattr(self.library, f"{self.symbol}_run")
        pointers = [self.ffi.addressof(part) for part in (given, outputs, memory)]
        return int(run(*pointers, self.ffi.NULL))

    def output(self, name: str, elements: int) -> list[int]:
        outputs = getattr(self.library, f"{self.symbol}_default_outputs")
        return list(np.frombuffer(self.ffi.buffer(getattr(outputs, name), elements), np.int8))


def build(artifact: Artifact, folder: Path, cc: tuple[str, ...], inputs: list[str], outputs: list[str]) -> Host:
    import cffi

    prefix = f"ferrule_{artifact.symbol}"
    (folder / "twice.h").write_text(HEADER)
    for name, text in artifact.files.items():
        (folder / name).write_text(text)
    subprocess.run(
        [
            *cc, "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-shared", "-fPIC",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{folder}", f"-I{root() / 'include'}",
            str(folder / f"{prefix}.c"), str(folder / f"{prefix}_weights.c"), "-o", str(folder / "model.so"),
        ],
        check=True,
    )  # fmt: skip
    ffi = cffi.FFI()
    ffi.cdef(f"""
        struct ferrule_run_info {{ uint32_t failed_operator; void (*on_operator)(void *, uint32_t); void *context; }};
        struct {prefix}_inputs {{ {"".join(f"const int8_t *{name};" for name in inputs)} }};
        struct {prefix}_outputs {{ {"".join(f"int8_t *{name};" for name in outputs)} }};
        struct {prefix}_memory {{ uint8_t *sram; size_t sram_bytes; }};
        extern struct {prefix}_inputs {prefix}_default_inputs;
        extern struct {prefix}_outputs {prefix}_default_outputs;
        extern struct {prefix}_memory {prefix}_default_memory;
        int32_t {prefix}_run(const struct {prefix}_inputs *, const struct {prefix}_outputs *,
                             const struct {prefix}_memory *, struct ferrule_run_info *);
    """)
    return Host(ffi=ffi, library=ffi.dlopen(str(folder / "model.so")), symbol=prefix)


class Workspace:
    """Memory for a workspace, with room around it."""

    def __init__(self, ffi: Any, size_bytes: int) -> None:  # noqa: ANN401 cffi has no types
        self.all = ffi.new("uint8_t[]", size_bytes + 2 * ARENA_ALIGNMENT)
        self.start = self.all + -int(ffi.cast("uintptr_t", self.all)) % ARENA_ALIGNMENT


X = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)


def chain() -> Graph:
    graph = Graph("chain")
    x = graph.add_input(tensor("x", 3, 4))
    graph.set_outputs([double(graph, double(graph, x, "a"), "y")])
    return graph


@pytest.mark.cc
def test_a_chain_runs(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    host = build(emit(chain()), tmp_path, host_cc, ["x"], ["y"])
    assert host.run(x=X) == 0
    assert host.output("y", 12) == list((X * 4).ravel())


@pytest.mark.cc
def test_null_pointers_are_refused(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    host = build(emit(chain()), tmp_path, host_cc, ["x"], ["y"])
    library, ffi = host.library, host.ffi
    good = [
        ffi.addressof(library.ferrule_chain_default_inputs),
        ffi.addressof(library.ferrule_chain_default_outputs),
        ffi.addressof(library.ferrule_chain_default_memory),
    ]
    empty = [ffi.new(f"struct ferrule_chain_{part} *") for part in ("inputs", "outputs", "memory")]
    for index in range(3):
        for bad in (ffi.NULL, empty[index]):
            arguments = [*good]
            arguments[index] = bad
            assert library.ferrule_chain_run(*arguments, ffi.NULL) == -1


@pytest.mark.cc
def test_memory_that_is_misaligned_or_too_small_is_refused(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    artifact = emit(chain())
    host = build(artifact, tmp_path, host_cc, ["x"], ["y"])
    library, ffi, need = host.library, host.ffi, artifact.workspace_bytes
    structs = [ffi.addressof(getattr(library, f"ferrule_chain_default_{part}")) for part in ("inputs", "outputs")]
    arena = Workspace(ffi, need)

    def status(start: int, size_bytes: int) -> int:
        memory = ffi.new("struct ferrule_chain_memory *", (arena.start + start, size_bytes))
        return int(library.ferrule_chain_run(*structs, memory, ffi.NULL))

    assert need > 0
    assert library.ferrule_chain_default_memory.sram_bytes == need
    assert (status(0, need), status(0, need + 1), status(ARENA_ALIGNMENT, need)) == (0, 0, 0)
    assert {status(start, need) for start in range(1, ARENA_ALIGNMENT)} == {-1}
    assert {status(0, size_bytes) for size_bytes in (0, 1, need - 1)} == {-1}


def test_a_tensor_that_is_misaligned_for_its_type_is_refused() -> None:
    graph = Graph("wide")
    wide = TensorInfo("x", (3,), DataType.FLOAT32)
    layer = Layer("l", LayerType.RELU, ReluDescriptor(), inputs=("x",), outputs=("y",))
    graph.add_input(wide)
    graph.add_layer(layer, [replace(wide, name="y")])
    graph.set_outputs(["y"])
    text = emit(graph).files["ferrule_wide.c"]
    refusal = "if (!ferrule_is_aligned(inputs->x, 4U)) {\n        return FERRULE_ERR_ARGUMENT;"
    assert refusal in text
    assert refusal.replace("inputs->x", "outputs->y") in text


@pytest.mark.cc
def test_the_caller_is_told_of_every_operator(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    host = build(emit(chain()), tmp_path, host_cc, ["x"], ["y"])
    seen = []
    callback = host.ffi.callback("void(void *, uint32_t)", lambda _, index: seen.append(index))
    info = host.ffi.new("struct ferrule_run_info *", {"failed_operator": 7, "on_operator": callback})
    library, ffi = host.library, host.ffi
    library.ferrule_chain_run(
        ffi.addressof(library.ferrule_chain_default_inputs),
        ffi.addressof(library.ferrule_chain_default_outputs),
        ffi.addressof(library.ferrule_chain_default_memory),
        info,
    )
    assert seen == [0, 1, 2]
    assert info.failed_operator == 0xFFFF_FFFF


@pytest.mark.cc
@pytest.mark.parametrize("own_memory", [False, True])
def test_views_between_inputs_and_outputs_become_copies(
    tmp_path: Path, host_cc: tuple[str, ...], own_memory: bool
) -> None:
    graph = Graph("views")
    x = graph.add_input(tensor("x", 3, 4))
    flat = reshape(graph, x, "flat", 12)
    middle = double(graph, flat, "middle")
    square = reshape(graph, middle, "square", 4, 3)
    again = reshape(graph, square, "again", 2, 6)
    graph.set_outputs([flat, square, again, x, square])
    artifact = emit(graph)
    host = build(artifact, tmp_path, host_cc, ["x"], ["flat", "square", "again", "x", "square_2"])
    kernels = [record.kernel for record in artifact.operators]
    assert kernels == ["copy", "twice", "view", "copy"]
    if not own_memory:
        assert host.run(x=X) == 0
        assert host.output("again", 12) == list((X * 2).ravel())
        return
    ffi, library = host.ffi, host.library
    buffers = {name: ffi.new("int8_t[12]") for name in ("flat", "square", "again", "x", "square_2")}
    source = ffi.new("int8_t[12]", list(X.ravel()))
    outputs = ffi.new("struct ferrule_views_outputs *", buffers)
    arena = Workspace(ffi, artifact.workspace_bytes)
    memory = ffi.new("struct ferrule_views_memory *", (arena.start, artifact.workspace_bytes))
    inputs = ffi.new("struct ferrule_views_inputs *", {"x": source})
    assert library.ferrule_views_run(inputs, outputs, memory, ffi.NULL) == 0
    expected = {"flat": X, "square": X * 2, "again": X * 2, "x": X, "square_2": X * 2}
    for name, buffer in buffers.items():
        assert list(buffer) == list(expected[name].ravel()), name


@pytest.mark.cc
@pytest.mark.parametrize(
    "values", [np.array([1, -2, 3, -4], np.int8), np.array([True, False, True]), np.array([1 << 40, -1])], ids=str
)
def test_constant_outputs_are_copied(values: Array, tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    graph = Graph("constants")
    x = graph.add_input(tensor("x", 3, 4))
    info = TensorInfo("fixed", values.shape, DataType(str(values.dtype)))
    graph.set_outputs([graph.add_constant(info, values), double(graph, x, "y")])
    host = build(emit(graph), tmp_path, host_cc, ["x"], ["constant", "y"])
    assert host.run(x=X) == 0
    assert host.output("constant", values.nbytes) == list(values.view(np.int8))
    assert host.output("y", 12) == list((X * 2).ravel())


@pytest.mark.cc
def test_nothing_is_declared_that_nobody_reads(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    graph = Graph("idle")
    graph.add_input(tensor("unread", 3, 4))
    x = graph.add_input(tensor("x", 3, 4))
    graph.set_outputs([reshape(graph, double(graph, x, "y"), "flat", 12)])
    host = build(emit(graph), tmp_path, host_cc, ["unread", "x"], ["flat"])
    assert host.run(x=X) == 0
    assert host.output("flat", 12) == list((X * 2).ravel())


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert emit(chain()).files == emit(chain()).files


def test_names_of_the_model_cannot_break_the_c() -> None:
    graph = Graph('odd */ "name" /* ??/')
    x = graph.add_input(tensor("*/ int", 2, 2))
    graph.set_outputs([double(graph, x, "memmove")])
    text = "\n".join(emit(graph).files.values())
    assert '*/ "name' not in text
    assert "*/ int" not in text.replace('"*/ int"', "")
    assert '"name" /*' not in text
    assert "??" not in text.replace('?""?', "")


@pytest.mark.cc
def test_a_layer_may_be_called_like_a_tensor(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    """The structs' members keep the tensors' names all the same."""
    graph = Graph("twins")
    x = graph.add_input(tensor("x", 3, 4))
    for name, source, target in (("x", x, "a_scratch"), ("a", "a_scratch", "y"), ("y", "y", "a")):
        layer = Layer(name, LayerType.RELU, ReluDescriptor(), inputs=(source,), outputs=(target,))
        graph.add_layer(layer, [tensor(target, 3, 4)])
    graph.set_outputs(["a", "y"])
    host = build(emit(graph), tmp_path, host_cc, ["x"], ["a", "y"])
    assert host.run(x=X) == 0
    assert host.output("y", 12) == list((X * 4).ravel())
    assert host.output("a", 12) == list((X * 8).ravel())
    header = (tmp_path / "ferrule_twins.h").read_text()
    assert "const int8_t *x;" in header
    assert "    int8_t *a;" in header
    assert "    int8_t *y;" in header


def test_a_workspace_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ArenaOverflowError, match="arena needs"):
        emit(chain(), workspace_bytes=16)


def test_a_model_in_a_shared_arena_declares_memory_for_its_state_only() -> None:
    graph = Graph("counter")
    old = graph.add_state(tensor("old", 4), np.zeros(4, np.int8))
    graph.set_state(old, double(graph, old, "new"))
    graph.set_outputs([double(graph, graph.add_input(tensor("x", 4)), "y")])
    for arena, places in (("", ["sram", "state"]), ("shared", ["input_x", "output_y", "state"])):
        header = emit(graph, arena=arena).files["ferrule_counter.h"]
        assert re.findall(r"extern u?int8_t ferrule_counter_default_(\w+)\[", header) == places


def test_a_memory_for_scratch_is_described() -> None:
    fast = Scratch(name="fast", size_bytes=40, memory="dtcm")
    artifact = emit(chain(), scratches=(fast,), named=[shared_region("dtcm", 4096, 0, frozenset({CORE}))])
    assert "In memory dtcm, for scratch: a multiple of" in artifact.files["ferrule_chain.h"]


def test_too_many_dimensions_are_refused() -> None:
    graph = Graph("deep")
    x = graph.add_input(tensor("x", *[1] * 9))
    graph.set_outputs([double(graph, x, "y")])
    with pytest.raises(UnsupportedError, match="9 dimensions"):
        emit(graph)


@pytest.mark.cc
def test_generated_c_is_formatted(tmp_path: Path) -> None:
    from needs import require_program

    program = require_program("clang-format", "pip install -e '.[dev]'")
    for name, text in emit(chain()).files.items():
        path = tmp_path / name
        path.write_text(text)
        style = f"--style=file:{root() / '.clang-format'}"
        done = ran([program, style, "--dry-run", "-Werror", str(path)])
        assert done.returncode == 0, done.stderr
