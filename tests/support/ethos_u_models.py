# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models, compiled by Vela for Ethos-U and executed by the functional model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from needs import MODELS_SOURCE, lacking, require_module
from vela_cases import vela_case

from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor, read_npz
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.machine import ArrayMemory
from ferrule.backends.ethos_u.npu import Npu, Step
from ferrule.backends.ethos_u.settings import VELA_FILE, Settings
from ferrule.backends.ethos_u.stream import parse_payload
from ferrule.backends.ethos_u.vela import REMEDY, VelaResult, run_vela
from ferrule.formats import to_tflite
from ferrule.graph import Array

MODELS = {"ad01": "ad01_int8", "kws": "kws_ref_model", "vww": "vww_96_int8", "resnet": "pretrainedResnet_quant"}
_SYSTEMS = {
    0: ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    1: ("Ethos_U65_Client_Server", "Dedicated_Sram_384KB"),
}


def model_path(name: str) -> Path:
    """Return the file of a model; skip the test if FERRULE_MODELS is not set."""
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder) / f"{MODELS[name]}.tflite"


def compiled(
    names: Sequence[str], compiled_for: Configuration, *, optimise: str = "Performance"
) -> list[CompiledStream]:
    """Return what Vela makes of models, in their order."""
    results = _results([model_path(name).read_bytes() for name in names], compiled_for, optimise)
    assert [each.error for each in results] == [""] * len(names)
    return [read_npz(each.npz) for each in results]


def compiled_cases(kind: str, count: int, compiled_for: Configuration) -> list[CompiledStream]:
    """Return what Vela makes of random networks of one operator, without those that it refuses."""
    models = [to_tflite(vela_case(kind, seed)) for seed in range(count)]
    found = [read_npz(each.npz) for each in _results(models, compiled_for, "Performance") if not each.error]
    assert len(found) > count // 2
    return found


def _results(models: Sequence[bytes], compiled_for: Configuration, optimise: str) -> tuple[VelaResult, ...]:
    require_module("ethosu", REMEDY)
    system, mode = _SYSTEMS[compiled_for.product]
    settings = Settings(
        configuration=compiled_for, system_config=system, memory_mode=mode, config_file=VELA_FILE, optimise=optimise
    )
    return run_vela(models, settings, timeout_s=300)


class Execution:
    """A stream with memory of its own on an NPU."""

    def __init__(self, stream: CompiledStream, *, check_hazards: bool = False, native: bool = True) -> None:
        self._stream = stream
        scratch = np.zeros(stream.scratch_bytes, np.uint8)
        fast = np.zeros(stream.fast_scratch_bytes, np.uint8) if stream.fast_scratch_bytes else scratch
        self.regions = {0: np.frombuffer(stream.read_only, np.uint8), 1: scratch, 2: fast}
        self.npu = Npu(stream.configuration, ArrayMemory(self.regions), check_hazards=check_hazards, native=native)
        self._payload = parse_payload(stream.payload)

    def run(self, data: Array) -> tuple[Array, tuple[Step, ...]]:
        """Return the only output for the only input, as stored values without shape."""
        (source,), (target,) = self._stream.inputs, self._stream.outputs
        self._bytes(source)[:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        done = self.npu.run(self._payload)
        return self._bytes(target).view(target.dtype.numpy).copy(), done

    def _bytes(self, tensor: StreamTensor) -> Array:
        return self.regions[tensor.region][tensor.offset : tensor.offset + tensor.size_bytes]
