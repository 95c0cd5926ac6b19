# SPDX-License-Identifier: Apache-2.0
"""One step of the check of one public model, in a process of its own, since an interpreter may abort the process.

Called by `public_models` as `python model_worker.py STEP MODEL FOLDER ...`; prints the result as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import ferrule
from ferrule import formats
from ferrule.errors import FerruleError
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.graph import Array

_ARENA_BYTES = 256 << 20
_INDEX_LIMIT = 8
"""Inputs of int32 and int64 are usually indices or counts; they are below this."""
_RELATIVE, _ABSOLUTE = 1e-5, 1e-6
"""The tolerance of docs/operators.md for whole networks of float32."""

Result = dict[str, Any]


def tflm(model: Path, folder: Path, number: int, seconds: float) -> Result:
    """Run TensorFlow Lite Micro on a sequence of random inputs with one interpreter, and store both in the folder."""
    import tflite
    from tflite_micro.python.tflite_micro import runtime

    data = model.read_bytes()
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=_ARENA_BYTES)
    details = [interpreter.get_input_details(index) for index in range(subgraph.InputsLength())]
    generator = np.random.default_rng(len(data))
    start = time.monotonic()
    done = 0
    while done < number and (done == 0 or time.monotonic() - start < seconds):
        inputs = [_random(generator, tuple(each["shape"]), np.dtype(each["dtype"])) for each in details]
        for index, array in enumerate(inputs):
            interpreter.set_input(array, index)
        interpreter.invoke()
        outputs = [np.array(interpreter.get_output(index)) for index in range(subgraph.OutputsLength())]
        arrays = {f"input{index}": array for index, array in enumerate(inputs)}
        arrays |= {f"output{index}": array for index, array in enumerate(outputs)}
        np.savez(folder / f"{done}.npz", allow_pickle=False, **arrays)
        done += 1
    return {"runs": done}


def load(model: Path, _folder: Path, _number: int, _seconds: float) -> Result:
    """Load the model with Ferrule; `blocks` are all reasons if it is refused."""
    try:
        network = _network(model)
    except FerruleError as error:
        return {"loads": False, "blocks": str(error).splitlines(), "lacks": _lacks(model.read_bytes())}
    return {"loads": True, "layers": len(network.layers), "macs": network.macs()}


def compare(model: Path, folder: Path, _number: int, seconds: float) -> Result:
    """Run the numpy kernels on the stored inputs, one after the other, and compare the outputs with the stored ones.

    The same runs on the network that is written and read again must give the same bits.
    """
    network = _network(model)
    again = formats.load(formats.to_tflite(network), name="again")
    verdicts: list[Result] = []
    start = time.monotonic()
    state, other_state = network.initial_state(), again.initial_state()
    for index in range(len(list(folder.glob("*.npz")))):
        if verdicts and time.monotonic() - start > seconds:
            break
        with np.load(folder / f"{index}.npz") as stored:
            inputs = [stored[f"input{position}"] for position in range(len(network.inputs))]
            expected = [stored[f"output{position}"] for position in range(len(network.outputs))]
        outputs = network.run(inputs, state=state)
        verdicts.append(_difference(outputs, expected))
        repeated = again.run(inputs, state=other_state)
        if any(one.tobytes() != other.tobytes() for one, other in zip(outputs, repeated, strict=True)):
            verdicts.append({"verdict": "differs", "detail": "the network differs after it was written and read again"})
    return {"compared": len(verdicts)} | max(verdicts, key=lambda each: _ORDER.index(each["verdict"]))


def board(model: Path, _folder: Path, _number: int, _seconds: float, name: str) -> Result:
    """Run the firmware on a board and compare its outputs with those of the numpy kernels."""
    try:
        report = ferrule.compile(_network(model), board=name).run()
    except FerruleError as error:
        return {"board": "refused", "detail": str(error).splitlines()[0]}
    return {"board": str(report.verdict), "count": report.count_per_inference}


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


_ORDER = ("exact", "close", "differs")


def _network(model: Path) -> ferrule.Network:
    with mock.patch("ferrule.errors._LISTED", 1 << 20):  # every reason
        return ferrule.load(model.read_bytes())


def _difference(outputs: Sequence[Array], expected: Sequence[Array]) -> Result:
    if all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(outputs, expected, strict=True)):
        return {"verdict": "exact"}
    detail = []
    close = True
    for position, (found, wanted) in enumerate(zip(outputs, expected, strict=True)):
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            detail.append(f"output {position} is {found.dtype}{found.shape}, TFLM's {wanted.dtype}{wanted.shape}")
            close = False
            continue
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        bound = _RELATIVE * np.abs(b) + _ABSOLUTE * max(1.0, float(np.abs(b).max(initial=0)))
        close &= found.dtype.kind == "f" and bool(np.all(np.abs(a - b) <= bound))
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


_STEPS: dict[str, Callable[..., Result]] = {"tflm": tflm, "load": load, "compare": compare, "board": board}


def main(arguments: Sequence[str]) -> None:
    """Perform one step and print its result."""
    step, model, folder, number, seconds, *more = arguments
    print(json.dumps(_STEPS[step](Path(model), Path(folder), int(number), float(seconds), *more)))


if __name__ == "__main__":
    main(sys.argv[1:])
