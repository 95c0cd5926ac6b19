# SPDX-License-Identifier: Apache-2.0
"""One step of the check of one public model, in a process of its own, since an interpreter may abort the process.

Called by `public_models` and `onnx_table` as `python model_worker.py STEP MODEL FOLDER ...`; prints the result as one
line of JSON. The folder may have `given.npz` with inputs, `states.json` with the outputs that are fed back to inputs,
and `shapes.json` with the shapes of inputs that a file leaves open.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

import ferrule
from ferrule import formats
from ferrule.emulation import engine, engine_names
from ferrule.errors import FerruleError
from ferrule.firmware import TooLargeError
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.graph import Array
from ferrule.memory import ArenaOverflowError
from ferrule.network.bounds import initial_bounded, run_bounded
from ferrule.operators.arithmetic.error_bound import or_zeros
from ferrule.operators.arithmetic.running_error import Bounded

if TYPE_CHECKING:
    from tflite import SubGraph

_ARENA_BYTES = 256 << 20
_INDEX_LIMIT = 8
"""Inputs of int32 and int64 are usually indices or counts; they are below this."""
_FEW = 0.1
"""The share of the range by which a quantised model may differ from onnxruntime, which computes parts in float32."""
_RELATIVE = 1e-3
_OF_LARGEST = 1e-4
"""By how much a float may be off that is `near`: of itself, and of the largest element."""
_NUMPY_TYPES = {
    "tensor(float)": "float32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(int16)": "int16",
    "tensor(uint16)": "uint16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(bool)": "bool",
}
"""By the names of onnxruntime."""

Result = dict[str, Any]


def tflm(model: Path, folder: Path, number: int, seconds: float) -> Result:
    """Run TensorFlow Lite Micro on a sequence of inputs with one interpreter, and store inputs and outputs.

    Inputs that are not given are random, and an input that an output is fed back to is at first zero. These inputs and
    outputs are not stored, since they are Ferrule's states.
    """
    import tflite
    from tflite_micro.python.tflite_micro import runtime

    data = model.read_bytes()
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=_ARENA_BYTES)
    details = [interpreter.get_input_details(index) for index in range(graph.InputsLength())]
    fed_back = _fed_back(folder, graph)
    returned = {source: np.zeros(details[source]["shape"], details[source]["dtype"]) for source in fed_back}
    given = _stored(folder / "given.npz")
    random = np.random.default_rng(len(data))
    stored: dict[str, list[Array]] = {}
    start = time.monotonic()
    for step in range(number):
        if step and time.monotonic() - start > seconds:
            break
        for index, each in enumerate(details):
            array = returned.get(index)
            if array is None:
                name = f"input{index}"
                array = (
                    given[name][step]
                    if name in given
                    else _random(random, tuple(each["shape"]), np.dtype(each["dtype"]))
                )
                stored.setdefault(name, []).append(array)
            interpreter.set_input(array, index)
        interpreter.invoke()
        outputs = [np.array(interpreter.get_output(index)) for index in range(graph.OutputsLength())]
        returned = {source: outputs[result] for source, result in fed_back.items()}
        for index, array in enumerate(outputs):
            if index not in fed_back.values():
                stored.setdefault(f"output{index}", []).append(array)
    arrays = {name: np.stack(found) for name, found in stored.items()}
    np.savez(folder / "sequence.npz", allow_pickle=False, **arrays)
    return {"steps": len(next(iter(arrays.values())))}


def load(model: Path, folder: Path, _number: int, _seconds: float) -> Result:
    """Load the model with Ferrule; `blocks` are all reasons if it is refused."""
    try:
        network = _network(model, folder)
    except FerruleError as error:
        lacks = [] if model.suffix == ".onnx" else _lacks(model.read_bytes())
        return {"loads": False, "blocks": str(error).splitlines(), "lacks": lacks}
    return {"loads": True, "layers": len(network.layers), "macs": network.macs()}


def compare(model: Path, folder: Path, _number: int, seconds: float) -> Result:
    """Run the numpy kernels on the stored inputs, one after the other, and compare the outputs with the stored ones.

    The same runs on the network that is written and read again must give the same bits.
    """
    network = _network(model, folder)
    again = formats.load(formats.to_tflite(network), name="again")
    inputs, expected = _sequence(folder)
    found: list[list[Bounded]] = []
    start = time.monotonic()
    state, other_state = initial_bounded(network), again.initial_state()
    for sample in zip(*inputs, strict=True):
        if found and time.monotonic() - start > seconds:
            break
        found.append(run_bounded(network, sample, state))
        repeated = again.run(sample, state=other_state)
        if any(one.values.tobytes() != other.tobytes() for one, other in zip(found[-1], repeated, strict=True)):
            return {"verdict": "differs", "detail": "the network differs after it was written and read again"}
    steps = len(found)
    return {"steps": steps} | _difference(*_stacked(found), [each[:steps] for each in expected])


def onnxruntime(model: Path, folder: Path, number: int, _seconds: float) -> Result:
    """Run onnxruntime on the inputs that are stored beside the model, or on random ones; store inputs and outputs.

    `differ` counts the elements that differ from the stored outputs, which may come from another processor.
    """
    from onnx_storage import sequence, session

    running = session(model)
    random = np.random.default_rng(model.stat().st_size)
    shapes = _shapes(folder)
    stored = {name: array[:number] for name, array in _stored(model.with_suffix(".npz")).items()}
    given = {name: array for name, array in stored.items() if name.startswith("input")}
    for index, each in enumerate(running.get_inputs()):
        shape = shapes.get(
            each.name, tuple(extent if isinstance(extent, int) and extent > 0 else 1 for extent in each.shape)
        )
        dtype = np.dtype(_NUMPY_TYPES[each.type])
        given.setdefault(f"input{index}", np.stack([_random(random, shape, dtype) for _ in range(number)]))
    names = [each.name for each in running.get_inputs()]
    samples = [
        {name: np.asarray(given[f"input{index}"][step]) for index, name in enumerate(names)}
        for step in range(len(given["input0"]))
    ]
    found = sequence(model, samples)
    outputs = {name: array for name, array in found.items() if name not in given}
    np.savez(folder / "sequence.npz", allow_pickle=False, **given)
    np.savez(folder / "expected.npz", allow_pickle=False, **outputs)
    differ = sum(int(np.count_nonzero(array != stored[name])) for name, array in outputs.items() if name in stored)
    return {"steps": len(samples), "differ": differ}


def counted(model: Path, folder: Path, _number: int, seconds: float) -> Result:
    """Run the numpy kernels on the stored inputs, and compare the outputs with onnxruntime's.

    The verdict is `exact`, `close` (floats within the tolerance), `counted` if the network has integer tensors and
    no output is farther away than `_FEW` of the range of onnxruntime's, or else `near` if floats are off by at most
    `_RELATIVE` of an element and `_OF_LARGEST` of the largest one: onnxruntime's Sigmoid and Tanh are approximations,
    with errors beyond the bounds of elements near a limit.
    """
    network = _network(model, folder)
    inputs, _ = _sequence(folder)
    expected = list(_stored(folder / "expected.npz").values())
    found: list[list[Bounded]] = []
    start = time.monotonic()
    for sample in zip(*inputs, strict=True):
        if found and time.monotonic() - start > seconds:
            break
        found.append(run_bounded(network, sample))
    outputs, errors = _stacked(found)
    wanted = [each[: len(found)] for each in expected]
    result = _difference(outputs, errors, wanted) | {"steps": len(found)}
    quantised = any(each.info.dtype in {ferrule.DataType.INT8, ferrule.DataType.INT16} for each in network.tensors)
    if result["verdict"] == "differs" and quantised and all(map(_near, outputs, wanted)):
        result["verdict"] = "counted"
    elif result["verdict"] == "differs" and all(map(_near_float, outputs, wanted)):
        result["verdict"] = "near"
    return result


def _near_float(found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    size = np.abs(b[np.isfinite(b)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= _RELATIVE * np.abs(b) + _OF_LARGEST * size
    return bool(np.all(close | (a == b) | (np.isnan(a) & np.isnan(b))))


def _near(found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    return bool(np.abs(a - b).max(initial=0) <= _FEW * max(np.ptp(b), np.abs(b).max(initial=0)))


def board(model: Path, folder: Path, number: int, seconds: float, name: str) -> Result:
    """Run the firmware on a board, and compare each output with the numpy kernels' and with the stored one, if any.

    Without stored inputs, they are the pattern of docs/running.md.
    """
    network = _network(model, folder)
    try:
        firmware = ferrule.compile(network, board=name)
    except (TooLargeError, ArenaOverflowError) as error:
        return {"verdict": "too big", "detail": str(error)}
    chosen = next(each for each in engine_names() if engine(each).refuses(firmware.board, ()) is None)
    stored = (folder / "sequence.npz").is_file()
    inputs, expected = _sequence(folder, number) if stored else ([], [])
    if any(array.ndim == 1 for array in inputs):  # a scalar has no axis along which runs are joined
        inputs, expected = _sequence(folder, 1)
    joined = [array.reshape(-1, *array.shape[2:]) if array.ndim > 1 else array.reshape(()) for array in inputs]
    report = firmware.run(joined if stored else None, engine=chosen, timeout_s=seconds)
    flash = report.memory.flash
    result = {
        "engine": chosen,
        "count": report.count.per_inference,
        "flash": 0 if flash is None else flash.total,
        "ram": report.memory.ram.total,
        "steps": len(inputs[0]) if inputs else 1,
    }
    if report.verdict is ferrule.Verdict.DIFFERENT:
        return result | {"verdict": "differs", "detail": "the board differs from the numpy kernels"}
    if not expected:
        return result | {"verdict": "exact" if report.verdict is ferrule.Verdict.EXACT else "close"}
    state = initial_bounded(network)
    _, errors = _stacked([run_bounded(network, sample, state) for sample in zip(*inputs, strict=True)])
    outputs = [np.reshape(a, b.shape) for a, b in zip(report.outputs, expected, strict=True)]
    return result | _difference(outputs, errors, expected)


def host(model: Path, folder: Path, number: int, _seconds: float) -> Result:
    """Run the runtime on this machine, with CpuAcc and, for layers that it refuses, CpuRef; compare with numpy."""
    from ferrule.optimizer import optimize
    from ferrule.runtime import Runtime

    network = _network(model, folder)
    samples = list(zip(*_sequence(folder, number)[0], strict=True))
    with Runtime() as runtime:
        optimized = optimize(network, ["CpuAcc", "CpuRef"], runtime.registry)
        loaded = runtime.load_network(optimized)
        found = [runtime.enqueue_workload(loaded, sample) for sample in samples]
    expected, errors = _stacked([run_bounded(network, sample) for sample in samples])
    outputs = [np.stack(each) for each in zip(*found, strict=True)]
    fallen = sum(assigned.backend == "CpuRef" for assigned in optimized.assignment.values())
    return _difference(outputs, errors, expected) | {
        "steps": len(samples),
        "layers": len(optimized.assignment),
        "cpu_ref": fallen,
    }


def _lacks(data: bytes) -> list[str]:
    """Return the operators of all subgraphs that Ferrule's table lacks."""
    import tflite

    record = tflite.Model.GetRootAs(data, 0)
    names = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    found = set()
    for index in range(record.OperatorCodesLength()):
        code = record.OperatorCodes(index)
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        custom = code.CustomCode()
        found.add(f"CUSTOM {custom.decode()}" if custom else names[builtin])
    return sorted(found - {each.value for each in OPERATORS})


def _network(model: Path, folder: Path) -> ferrule.Network:
    with mock.patch("ferrule.errors._LISTED", 1 << 20):  # every reason
        network = ferrule.load(model if model.suffix == ".onnx" else model.read_bytes(), shapes=_shapes(folder) or None)
    for source, output in _states(folder).items():
        network.keep_output(output, source)
    return network


def _states(folder: Path) -> dict[str, str]:
    return dict(_document(folder / "states.json"))


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    return {name: tuple(shape) for name, shape in _document(folder / "shapes.json").items()}


def _document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _fed_back(folder: Path, graph: SubGraph) -> dict[int, int]:
    """Return the index of the output that is fed back, by the index of the input."""
    inputs, outputs = (
        [graph.Tensors(index).Name().decode() for index in tensors]
        for tensors in (graph.InputsAsNumpy(), graph.OutputsAsNumpy())
    )
    return {inputs.index(source): outputs.index(result) for source, result in _states(folder).items()}


def _stored(path: Path) -> dict[str, Array]:
    if not path.is_file():
        return {}
    with np.load(path) as arrays:
        return dict(arrays)


def _sequence(folder: Path, number: int | None = None) -> tuple[list[Array], list[Array]]:
    """Return the stored inputs and outputs in order, or the first `number` of each; the first axis is the step."""
    arrays = _stored(folder / "sequence.npz")
    ordered = sorted(arrays, key=lambda name: (len(name), name))
    inputs, outputs = (
        [arrays[name][:number] for name in ordered if name.startswith(kind)] for kind in ("input", "output")
    )
    return inputs, outputs


def _stacked(runs: Sequence[Sequence[Bounded]]) -> tuple[list[Array], list[Array]]:
    """Return the outputs of all steps, the first axis, and how far other code may be away from each element."""
    columns = list(zip(*runs, strict=True))
    values = [np.stack([each.values for each in column]) for column in columns]
    return values, [np.stack([or_zeros(each.error, each.values) for each in column]) for column in columns]


def _difference(outputs: Sequence[Array], errors: Sequence[Array], expected: Sequence[Array]) -> Result:
    """Compare the outputs of all steps, the first axis, with the oracle's.

    A float may be off by twice its bound, since both sides may be off by one; without a bound, it must be equal.
    """
    if all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(outputs, expected, strict=True)):
        return {"verdict": "exact"}
    detail = []
    close = True
    for position, (found, error, wanted) in enumerate(zip(outputs, errors, expected, strict=True)):
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            detail.append(f"output {position} is {found.dtype}{found.shape}, the oracle's {wanted.dtype}{wanted.shape}")
            close = False
            continue
        a, b = (each.astype(np.float64).reshape(len(each), -1) for each in (found, wanted))
        known = np.where(np.isfinite(error), error, 0).reshape(a.shape)
        near = (np.abs(a - b) <= 2 * known) | (a == b) | (np.isnan(a) & np.isnan(b))
        close &= found.dtype.kind == "f" and bool(np.all(near))
        wrong = int(np.count_nonzero(a != b))
        if wrong:
            detail.append(f"output {position}: {wrong} of {a.size} differ, by {np.abs(a - b).max():.3g} at most")
    return {"verdict": "close" if close else "differs", "detail": "; ".join(detail)}


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return generator.normal(0, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.itemsize > 2:
        return generator.integers(0, _INDEX_LIMIT, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


STEPS: dict[str, Callable[..., Result]] = {
    "tflm": tflm,
    "onnxruntime": onnxruntime,
    "load": load,
    "compare": compare,
    "counted": counted,
    "board": board,
    "host": host,
}
"""By name: the function (model, folder, number of inputs, seconds for them, further words) -> result."""


def main(arguments: Sequence[str]) -> None:
    """Perform one step and print its result."""
    step, model, folder, number, seconds, *more = arguments
    print(json.dumps(STEPS[step](Path(model), Path(folder), int(number), float(seconds), *more)))


if __name__ == "__main__":
    main(sys.argv[1:])
