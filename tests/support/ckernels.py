# SPDX-License-Identifier: Apache-2.0
"""Networks run natively on this machine: lowered, generated as C, compiled by the host's compiler and called.

All warnings are errors, and the undefined behaviour sanitizer ends the process with a message. With `ADDRESS`, the
address sanitizer's library must be preloaded (LD_PRELOAD).
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from children import ran
from needs import require_cc, require_module

from ferrule.backends.cpu_acc.backend import CpuAcc
from ferrule.backends.target import CoreFeatures, Face, Goal, default_target
from ferrule.codegen import Artifact, Plan, generate
from ferrule.graph import Array, Graph
from ferrule.network import Network

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=undefined")
ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g")  # without -g, it names no lines
_FLAGS = ("-std=c11", "-O1", "-fPIC", "-ffp-contract=off", *WARNINGS)
_GUARD_BYTES = 64
_PATTERN = 0xA5
_WORKSPACE_BYTES = 1 << 22


def run_native(
    network: Network, inputs: Sequence[Array], *, sanitizers: tuple[str, ...] = UNDEFINED, defines: tuple[str, ...] = ()
) -> list[Array]:
    """Return the outputs of the generated C; the workspace starts as a pattern, and all guards must stay intact."""
    return NativeNetwork(network, sanitizers=sanitizers, defines=defines).run(inputs)


class NativeNetwork:
    """A network compiled once, for runs on many inputs."""

    def __init__(
        self,
        network: Network,
        *,
        sanitizers: tuple[str, ...] = UNDEFINED,
        defines: tuple[str, ...] = (),
        core: CoreFeatures | None = None,
        graph: Graph | None = None,
        compiler: tuple[str, ...] = (),
        goal: Goal = Goal.BALANCED,
    ) -> None:
        """Lower for `core`, whose kernels then run in plain C; without a core, for one without extensions.

        `graph` is what CpuAcc made of the network; by default the network itself. `compiler` is the command that
        compiles C, by default that of this host.
        """
        require_module("cffi", "pip install cffi")
        import cffi

        self.network = network
        network.validate()
        self.artifact = _generate(network if graph is None else graph, core, goal)
        flags = (*sanitizers, *(f"-D{define}" for define in defines))
        library = _build(self.artifact, compiler or require_cc(), flags)
        self._ffi = cffi.FFI()
        self._ffi.cdef(f"int32_t ferrule_{self.artifact.symbol}_run(void **, void **, void **, void *);")
        if self.artifact.input_rows:
            rows = f"ferrule_{self.artifact.symbol}_input_rows"
            self._ffi.cdef(f"int32_t {rows}(void **, const void *, uint32_t, uint32_t);")
        if network.states:
            self._ffi.cdef(f"int32_t ferrule_{self.artifact.symbol}_reset(void **);")
        # The structs hold nothing but pointers and sizes, so an array of pointers has the same layout.
        self._library = self._ffi.dlopen(str(library))
        self._run = getattr(self._library, f"ferrule_{self.artifact.symbol}_run")
        self._state = self.new_state()
        if network.states:
            self.reset()

    @property
    def kernels(self) -> list[str]:
        """The name of each layer's kernel."""
        return [record.kernel for record in self.artifact.operators]

    def new_state(self) -> Guarded:
        """Return memory for the state of a sequence of runs, which is not valid."""
        return Guarded(self.artifact.storage.state_bytes)

    def reset(self, state: Guarded | None = None) -> int:
        """Write the initial state, to that of `run` by default, and return the status."""
        reset = getattr(self._library, f"ferrule_{self.artifact.symbol}_reset")
        return int(reset(self._memory(Guarded(0), state)))

    def _memory(self, workspace: Guarded, state: Guarded | None) -> object:
        state = self._state if state is None else state
        kept = [state.address, state.size_bytes] if self.network.states else []
        return self._pointers([workspace.address, workspace.size_bytes, *kept])

    def run(self, inputs: Sequence[Array], *, state: Guarded | None = None, expected: int = 0) -> list[Array]:
        """Return the outputs of a run with status `expected`; AssertionError if an input or a guard was overwritten.

        A network with state keeps it from run to run, in `state` if that is given.
        """
        given = [np.ascontiguousarray(array) for array in inputs]
        before = [array.copy() for array in given]
        outputs = [Guarded(info.size_bytes) for info in self.network.outputs]
        workspace = Guarded(self.artifact.workspace_bytes)
        status = self._run(
            self._pointers([array.ctypes.data for array in given]),
            self._pointers([output.address for output in outputs]),
            self._memory(workspace, state),
            self._ffi.NULL,
        )
        assert status == expected
        for array, copy in zip(given, before, strict=True):
            assert array.tobytes() == copy.tobytes(), "an input was overwritten"
        workspace.content()
        (self._state if state is None else state).content()
        return [
            np.frombuffer(output.content(), info.dtype.numpy).reshape(info.shape)
            for output, info in zip(outputs, self.network.outputs, strict=True)
        ]

    def run_rows(self, image: Array, pieces: Sequence[tuple[int, int]]) -> tuple[list[int], list[Array]]:
        """Give the rows of the only input in pieces of (first row, count), then end the inference.

        Return the status of each call, that of the run last, and the outputs.
        """
        give = getattr(self._library, f"ferrule_{self.artifact.symbol}_input_rows")
        outputs = [Guarded(info.size_bytes) for info in self.network.outputs]
        workspace = Guarded(self.artifact.workspace_bytes)
        memory = self._pointers([workspace.address, self.artifact.workspace_bytes])
        statuses = []
        for first, count in pieces:
            rows = np.ascontiguousarray(image[:, first : first + count]).copy()
            given = self._ffi.cast("void *", rows.ctypes.data)
            statuses.append(give(memory, given, first, count))
            rows.fill(99)  # the rows need not be kept
        addresses = [output.address for output in outputs]
        statuses.append(self._run(self._pointers([0]), self._pointers(addresses), memory, self._ffi.NULL))
        workspace.content()
        return statuses, [
            np.frombuffer(output.content(), info.dtype.numpy).reshape(info.shape)
            for output, info in zip(outputs, self.network.outputs, strict=True)
        ]

    def _pointers(self, addresses: Sequence[int]) -> object:
        return self._ffi.new("void *[]", [self._ffi.cast("void *", address) for address in addresses])


class Guarded:
    """Bytes filled with a pattern, aligned to 16, between two guards."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._memory = np.full(size_bytes + 2 * _GUARD_BYTES + 16, _PATTERN, np.uint8)
        self._start = _GUARD_BYTES + (-(self._memory.ctypes.data + _GUARD_BYTES)) % 16
        self.address = self._memory.ctypes.data + self._start

    def write(self, data: Array, offset: int = 0) -> None:
        """Copy an array's bytes to an offset."""
        start = self._start + offset
        self._memory[start : start + data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)

    def content(self) -> bytes:
        """Return the bytes; AssertionError if a guard was overwritten."""
        end = self._start + self.size_bytes
        assert (self._memory[: self._start] == _PATTERN).all(), "the bytes before a buffer were overwritten"
        assert (self._memory[end:] == _PATTERN).all(), "the bytes behind a buffer were overwritten"
        return self._memory[self._start : end].tobytes()


def _generate(network: Graph, core: CoreFeatures | None, goal: Goal) -> Artifact:
    backend = CpuAcc()
    target = backend.firmware_target()
    names = [layer.name for layer in network.layers]
    return generate(
        Plan(
            graph=network,
            firmware=dict.fromkeys(names, target),
            targets=dict.fromkeys(names, replace(default_target(backend.id, Face.FIRMWARE), core=core, goal=goal)),
            workspace_bytes=_WORKSPACE_BYTES,
        )
    )


def _build(artifact: Artifact, compiler: tuple[str, ...], flags: tuple[str, ...]) -> Path:
    parts = artifact.contributions
    includes = [f"-I{path}" for part in parts for path in part.include_paths]
    objects = [_object(compiler, path, (*flags, *includes)) for part in parts for path in part.source_paths]
    name = hashlib.sha256("".join(artifact.files.values()).encode()).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix=f"{name}_", dir=_folder()))
    sources = []
    for file, text in artifact.files.items():
        path = folder / file
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".c" and not path.stem.endswith("_link"):
            sources.append(str(path))
    library = folder / "network.so"
    _compile([*compiler, *_FLAGS, *flags, *includes, f"-I{folder}", "-shared", "-o", str(library), *sources, *objects])
    return library


def _object(compiler: Sequence[str], source: Path, flags: tuple[str, ...]) -> str:
    folder = _folder() / hashlib.sha256(" ".join((*compiler, *flags)).encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    path = folder / f"{source.stem}.o"
    if not path.exists():
        _compile([*compiler, *_FLAGS, *flags, "-c", "-o", str(path), str(source)])
    return str(path)


def _compile(command: Sequence[str]) -> None:
    done = ran(command)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ferrule_native_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
