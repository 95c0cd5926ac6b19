# SPDX-License-Identifier: Apache-2.0
"""The trial of a stream: it runs in the model of the NPU beside the numpy reference before it is used.

A stream that passes computes the reference's bits for the inputs of the trial in our model. This says nothing about
silicon.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.compiled import CompiledStream
from ferrule.backends.ethos_u.instance import StreamInstance
from ferrule.backends.ethos_u.tables import TABULATED, has_tables, wrong_tables
from ferrule.cache import Store
from ferrule.errors import FerruleError, MissingToolError
from ferrule.graph import Array, DataType, Graph, Layer, SubgraphView, TensorInfo, reset_value
from ferrule.nativelib import compiler_facts, host_compiler
from ferrule.operators import table
from ferrule.operators.interpreter import execute, macs_of
from ferrule.reading import files_below, list_folder, read_bytes

_EFFORT_LIMIT = 1 << 62
"""How much a stream of Vela computes is decided by the network."""
_SMALL_MACS = 1_000_000
_SPARSE_SETS = 12
"""Four shares of random values for each of the three levels."""
_LARGE_MACS = 50_000_000
"""Above it, a trial has fewer inputs: Vela's time grows less than that of a run."""
_LEVELS = ("the lowest", "the highest", "zero-point")
"""The sets of inputs of one value."""
_REFERENCE = ("graph", "operators")
"""The packages that compute the reference."""


@frozen
class Verdict:
    """What a trial found."""

    wrong: str = ""
    """What differs from the reference, or why the model cannot execute the stream; empty if the stream passes."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The layers whose tables differ, each with what is wrong."""

    @property
    def passes(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong and not self.tables


def verdict(stream: CompiledStream, view: SubgraphView, model: bytes) -> Verdict:
    """Return the verdict on the stream of a subgraph; `model` is the file that it was compiled from.

    Verdicts are kept in the cache folder by the stream, the file, and the version of the reference and of our model.
    """
    places = [(each.region, each.offset, each.name) for each in (*stream.inputs, *stream.outputs)]
    scratch = (stream.scratch_bytes, stream.fast_scratch_bytes)
    what = [trial_version(), np.__version__, stream.configuration.name, stream.digest, scratch, places]
    digest = hashlib.sha256(json.dumps(what).encode() + b"\0" + model).hexdigest()
    store, name = Store("ethos_u"), f"trial-{digest}"
    kept = store.get(name)
    if kept is not None:
        return msgspec.msgpack.decode(kept, type=Verdict)
    found = _tried(stream, view)
    store.keep(name, msgspec.msgpack.encode(found))
    return found


@cache
def trial_version() -> str:
    """Return the digest of the sources of the reference and of our model, and of what compiles the latter, if any."""
    try:
        facts = compiler_facts(host_compiler("the model of EthosU"))
    except MissingToolError:  # numpy computes then
        facts = ()
    digest = hashlib.sha256("\0".join(facts).encode())
    package, own = Path(table.__file__).parents[1], Path(__file__).parent
    sources = [
        package / "_frozen.py",
        package / "nativelib.py",
        *list_folder(own, "*.py"),
        *files_below(own / "native"),
    ]
    for name in _REFERENCE:
        sources += files_below(package / name, "*.py")
    for path in sources:
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + read_bytes(path))
    return digest.hexdigest()


def _tried(stream: CompiledStream, view: SubgraphView) -> Verdict:
    graph = view.to_graph()
    tables: Mapping[str, str] = {}
    instance: StreamInstance | None = None
    for label, inputs in trial_inputs(graph, macs_of(graph, graph.layers)):
        found = [np.empty(info.shape, info.dtype.numpy) for info in graph.outputs]
        try:
            if instance is None:
                instance = StreamInstance(stream, effort_limit=_EFFORT_LIMIT)
                tables = wrong_tables(view, instance.tables()) if has_tables(view) else {}
            instance.run([inputs[info.name] for info in graph.inputs], found)
        except FerruleError as error:
            return Verdict(wrong=f"the model of the NPU cannot execute it: {error}", tables=tables)
        try:
            expected = execute(graph, inputs)
        except FerruleError as error:
            return Verdict(wrong=f"the reference cannot judge it: {error}", tables=tables)
        for info, values, wanted in zip(graph.outputs, found, expected, strict=True):
            if not np.array_equal(values, wanted):
                return Verdict(wrong=f"{_difference(info, values, wanted)} for {label} inputs", tables=tables)
    return Verdict(tables=tables)


def needs_own_trial(layer: Layer, graph: Graph) -> bool:
    """Return whether a layer's stream is tried before the layer becomes a part of a network's.

    Inside of a network, int16 values that wrap are rare, and so are the entries of tables. Any other layer is tried
    with the network alone.
    """
    infos = [graph.info(name) for name in (*layer.present_inputs, *layer.outputs)]
    return any(info.dtype is DataType.INT16 for info in infos) or layer.type in TABULATED


def trial_inputs(graph: Graph, macs: int = 0) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield the inputs of a trial by name, each set with the name of the set.

    Those of a large network are one set: random values, and bands of the lowest, the highest and the zero point. Those
    of a small one have further sets, mostly of one value, since few random values pass a minimum, a maximum or a curve.
    """
    for label, make in _sets(macs):
        yield label, {info.name: make(info) for info in graph.inputs}


def _sets(macs: int) -> Iterator[tuple[str, Callable[[TensorInfo], Array]]]:
    if macs > _LARGE_MACS:
        yield "banded", _banded
        return
    yield "random", _random
    yield "mixed", _mixed
    for number, label in enumerate(_LEVELS):
        yield label, partial(_level, number=number)
    for number in range(_SPARSE_SETS if macs < _SMALL_MACS else 0):
        yield "sparse", partial(_sparse, number=number)


def _level(info: TensorInfo, number: int) -> Array:
    """Return a tensor of one value: that of _LEVELS."""
    return reset_value(info) if number == 2 else np.full(info.shape, _limits(info)[number], info.dtype.numpy)


def _random(info: TensorInfo, salt: str = "") -> Array:
    """Return values over the whole range of an element type; a hash makes them, since numpy.random loads slowly."""
    data = _noise(f"{info.name}{salt}", info.elements * info.dtype.size_bytes)
    values = data < 128 if info.dtype is DataType.BOOL else data.view(info.dtype.numpy)
    return np.asarray(values.reshape(info.shape))


def _noise(seed: str, size_bytes: int) -> NDArray[np.uint8]:
    return np.frombuffer(hashlib.shake_128(seed.encode()).digest(size_bytes), np.uint8)


def _mixed(info: TensorInfo) -> Array:
    """Return values of which a quarter are the lowest, a quarter the highest, and the others any."""
    low, high = _limits(info)
    choice = _noise(f"{info.name} choice", info.elements).reshape(info.shape)
    values = np.where(choice < 64, low, np.where(choice < 128, high, _random(info, " value")))
    return values.astype(info.dtype.numpy)


def _sparse(info: TensorInfo, number: int) -> Array:
    """Return a tensor mostly of the lowest, the highest or the zero point; half to a sixteenth of it is random."""
    chosen = _noise(f"{info.name} choice {number}", info.elements).reshape(info.shape) < 128 >> number // 3
    return np.where(chosen, _random(info, f" {number}"), _level(info, number % 3))


def _banded(info: TensorInfo) -> Array:
    """Return random values in the first half of a tensor, then equal bands of the lowest, the highest and the zero."""
    values = _random(info).reshape(-1).copy()
    sixth = -(-values.size // 6)
    lowest, highest, zero = (values[at * sixth : (at + 1) * sixth] for at in (3, 4, 5))
    lowest[:], highest[:] = _limits(info)
    zero[:] = reset_value(info).reshape(-1)[: zero.size]
    return values.reshape(info.shape)


def _limits(info: TensorInfo) -> tuple[int, int]:
    if info.dtype is DataType.BOOL:
        return 0, 1
    limits = np.iinfo(info.dtype.numpy)
    return int(limits.min), int(limits.max)


def _difference(info: TensorInfo, found: Array, expected: Array) -> str:
    errors = np.abs(found.astype(np.int64) - expected.astype(np.int64))
    return (
        f"{np.count_nonzero(errors)} of {errors.size} values of '{info.name}' differ from the reference, "
        f"by up to {errors.max()},"
    )
