# SPDX-License-Identifier: Apache-2.0
"""Programs that run generated classes over the Arm Compute Library and record their tensors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.acl.template import render
from ferrule.acl.toolchain import AclToolchain
from ferrule.cache import Store
from ferrule.child_process import CommandError, run
from ferrule.codegen.acl import ArtifactRecord, TensorRecord, acl_target
from ferrule.errors import FerruleError
from ferrule.formats.hdf5 import extents, read_tensors, write_tensors
from ferrule.graph import Array, DataType
from ferrule.nativelib import compiler_facts
from ferrule.reading import list_folder, read_bytes
from ferrule.scratch import ScratchFolder

ON_NEON = "cl_on_neon.h"
"""The header that compiles classes for OpenCL against NEON, and checks its rules."""
VALIDATE = "cl_validate.h"
"""The header that compiles classes for OpenCL so that they only validate the arguments of all layers."""
_TIMEOUT_S = 600
_PARALLEL = max(1, min(8, os.cpu_count() or 1))


class ProgramError(FerruleError):
    """A compiler or a program failed; the message has the command and the last lines of its output."""


@frozen
class TraceProgram:
    """A program that runs any of some classes on given inputs and records the tensors after each layer."""

    path: Path
    toolchain: AclToolchain
    records: Mapping[str, ArtifactRecord]
    """The classes by name."""
    folder: Path
    """The folder with the parameter files of the classes."""

    def run(
        self,
        name: str,
        inputs: Mapping[str, Array],
        *,
        replacements: Mapping[str, Array] | None = None,
        observed: bool = True,
        parameters: Path | None = None,
    ) -> dict[str, Array]:
        """Run a class and return all tensors that its layers wrote, by their names in the network.

        With `replacements`, each tensor that is in it continues with that value after it was recorded, so that every
        layer gets exact inputs. Without `observed`, nothing happens between the layers, and only outputs are returned.

        Raises:
            ProgramError: the program failed, such as for a damaged parameter file.
        """
        record = self.records[name]
        with ScratchFolder() as scratch:
            source, recorded, replaced = (scratch.path / f"{each}.h5" for each in ("input", "record", "replacement"))
            made = [each for each in record.tensors if each.layer and (observed or each.role == "output")]
            write_tensors(source, _datasets(_inputs(record), inputs))
            arguments = [str(source), str(recorded)]
            if not observed:
                arguments.append("--outputs")
            elif replacements is not None:
                write_tensors(replaced, _datasets([each for each in made if each.name in replacements], replacements))
                arguments.append(str(replaced))
            self._call(name, parameters, *arguments)
            arrays = read_tensors(recorded, {dataset(tensor): (DataType(tensor.type), tensor.shape) for tensor in made})
        return {tensor.name: arrays[dataset(tensor)] for tensor in made}

    def profile(self, name: str, inputs: Mapping[str, Array]) -> dict[str, float]:
        """Run a class and return the microseconds of each layer, by its name; raises ProgramError as `run`."""
        record = self.records[name]
        with ScratchFolder() as scratch:
            source = scratch.path / "input.h5"
            write_tensors(source, _datasets(_inputs(record), inputs))
            printed = self._call(name, None, str(source), "--profile")
        times: dict[str, float] = {}
        for line in printed.splitlines():
            layer, _, microseconds = line.split("\t")
            times[layer] = times.get(layer, 0.0) + float(microseconds)
        return times

    def _call(self, name: str, parameters: Path | None, *arguments: str) -> str:
        file = self.folder / f"{name}.par" if parameters is None else parameters
        return _execute([*self.toolchain.launcher, str(self.path), name, str(file), *arguments], {})


def dataset(tensor: TensorRecord) -> str:
    """Return the name of a tensor's dataset: that of its accessor, since names in networks can have slashes."""
    return tensor.getter.removeprefix("get_")


def _inputs(record: ArtifactRecord) -> list[TensorRecord]:
    return [tensor for tensor in record.tensors if tensor.role == "input"]


def _datasets(tensors: Sequence[TensorRecord], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays by dataset, in the types that the class computes in."""
    return {dataset(tensor): arrays[tensor.name].astype(tensor.type) for tensor in tensors}


def build_program(
    records: Sequence[ArtifactRecord],
    folder: Path,
    includes: Sequence[Path],
    toolchain: AclToolchain,
    *,
    prelude: str = "",
) -> TraceProgram:
    """Compile classes, whose files are in a folder, into one program; it is taken from the cache if nothing changed.

    Args:
        records: the descriptions of the classes, whose names differ.
        folder: contains the files of all classes.
        includes: further folders with headers.
        toolchain: the tools.
        prelude: the header that is included first: `ON_NEON`, `VALIDATE` or none.

    Raises:
        ProgramError: the compiler failed.
        FerruleError: a file cannot be read, or the cache cannot be written.
    """
    main = render("trace.cpp.j2", artifacts=[class_values(record) for record in records])
    flags = [*toolchain.compile_flags, "-O0", "-DARM_COMPUTE_CL", *(("-include", prelude) if prelude else ())]
    name = f"trace_{_key(records, folder, includes, [main, *flags, *toolchain.link_flags], toolchain)}"
    flags += [f"-I{each}" for each in (folder, *includes)]

    def make(target: Path) -> None:
        _build(target, [record.artifact for record in records], main, flags, toolchain)
        target.chmod(0o755)

    cached = Store("acl").file(name, make, once=True)
    if not os.access(cached, os.X_OK):
        cached.chmod(0o755)
    by_name = {record.artifact: record for record in records}
    return TraceProgram(path=cached, toolchain=toolchain, records=by_name, folder=folder)


def _build(target: Path, names: Sequence[str], main: str, flags: Sequence[str], toolchain: AclToolchain) -> None:
    """Compile a few files, each of which includes the sources of several classes: the library's headers are long."""
    with ScratchFolder() as scratch:
        count = min(_PARALLEL, len(names))
        parts = ["".join(f'#include "{name}.cpp"\n' for name in names[index::count]) for index in range(count)]
        parts[-1] += main
        objects = []
        for index, part in enumerate(parts):
            (scratch.path / f"part{index}.cpp").write_text(part, encoding="utf-8")
            objects.append(scratch.path / f"part{index}.o")

        def compile_(made: Path) -> None:
            argv = [*toolchain.compiler, *flags, "-c", "-o", str(made), str(made.with_suffix(".cpp"))]
            _execute(argv, toolchain.environment)

        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(compile_, objects))
        argv = [*toolchain.compiler, "-o", str(target), *map(str, objects), *toolchain.link_flags]
        _execute(argv, toolchain.environment)


def _key(
    records: Sequence[ArtifactRecord],
    folder: Path,
    includes: Sequence[Path],
    facts: Sequence[str],
    toolchain: AclToolchain,
) -> str:
    digest = hashlib.sha256()
    files = [folder / f"{record.artifact}{suffix}" for record in records for suffix in (".h", ".cpp")]
    files += [header for include in includes for header in list_folder(include, "*.h")]
    try:
        for file in files:
            digest.update(f"{file.name}\0".encode())
            digest.update(read_bytes(file))
    except OSError as error:
        raise FerruleError(f"{error.filename} cannot be read: {error.strerror}") from error
    compiler = compiler_facts(toolchain.compiler, toolchain.environment)
    digest.update("\0".join([*facts, *compiler, toolchain.version]).encode())
    return digest.hexdigest()[:32]


def class_values(record: ArtifactRecord) -> dict[str, object]:
    """Return what the templates write of an artifact."""
    target = acl_target(record.target)
    tensors = [
        {**asdict(tensor), "dataset": dataset(tensor), "extents": extents(tensor.shape)} for tensor in record.tensors
    ]
    return {
        "name": record.artifact,
        "tensor": target.tensor.name,
        "scheduler": target.scheduler,
        "opencl": target.mapped,
        "tensors": tensors,
        "inputs": [each for each in tensors if each["role"] == "input"],
        "outputs": [each for each in tensors if each["role"] == "output"],
    }


def _execute(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    try:
        return run(argv, _TIMEOUT_S, environment={**os.environ, **environment}).stdout
    except CommandError as error:
        raise ProgramError(str(error)) from error
