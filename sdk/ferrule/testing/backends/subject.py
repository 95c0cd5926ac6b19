# SPDX-License-Identifier: Apache-2.0
"""The backend under test, and a plain backend beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ferrule._frozen import frozen
from ferrule.backends.backend import Backend
from ferrule.backends.context import CreationOptions, CustomAllocator
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry, registry_with
from ferrule.backends.tensor_handle import FactoryId
from ferrule.errors import FerruleError
from ferrule.optimizer import OptimizerOptions
from ferrule.runtime import Runtime


class Neighbour(CpuRef):
    """CpuRef with its own kind of handles, so that tensors passed to or from another backend are copied or imported."""

    id: ClassVar[BackendId] = BackendId("Neighbour")
    factory_id: ClassVar[FactoryId] = FactoryId("Ferrule/Neighbour")


@frozen
class Subject:
    """A backend under test, and the way to register it."""

    id: str
    registry: Callable[[], BackendRegistry] = partial(registry_with, ())
    """Returns a registry with the backend; called for each runtime."""
    options: CreationOptions = field(default_factory=CreationOptions)
    """Creation options of the tests' runtimes: the backend's own options, the folder of a dynamic backend."""
    model_options: ModelOptions = field(default_factory=dict)
    """The backend's options for optimising and loading networks."""

    @classmethod
    def of_folder(cls, backend_id: str, *folders: Path | str, **more: Any) -> Subject:  # noqa: ANN401 as the fields
        """Return the backend `backend_id` of the installed backends and of folders with a backend.toml."""
        return cls(id=backend_id, registry=lambda: registry_with(folders), **more)

    @classmethod
    def dynamic(cls, backend_id: str, folder: Path, *, isolate: bool = False, **more: Any) -> Subject:  # noqa: ANN401
        """Return a shared object in a folder; with `isolate`, it runs in a process of its own.

        The registry has no shipped backends, so the shared object may have the id of one.
        """
        options = CreationOptions(dynamic_backends_path=folder, isolate_dynamic_backends=isolate)
        return cls(id=backend_id, registry=BackendRegistry, options=options, **more)

    def runtime(
        self,
        *,
        profiling: bool = False,
        allocators: Mapping[str, CustomAllocator] | None = None,
        partners: Sequence[type[Backend]] = (),
        fallback_allocators: Sequence[CustomAllocator] = (),
    ) -> SubjectRuntime:
        """Return a runtime that has the backend, the neighbour and more backends.

        Raises:
            FerruleError: the backend is not usable here; the message contains the reason.
        """
        registry = self.registry()
        others: tuple[type[Backend], ...] = (Neighbour, *partners)
        for other in others:
            registry.register(other.id, other, origin="ferrule.testing")
        options = replace(
            self.options,
            profiling=profiling,
            custom_allocators=allocators or {},
            fallback_allocators=fallback_allocators,
        )
        runtime = SubjectRuntime(self, options, registry)
        if self.id not in runtime.registry:
            reasons = [row.reason for row in runtime.backends if row.id == self.id]
            reasons += [f"{row.path}: {row.message}" for row in runtime.dynamic_report if not row.accepted]
            runtime.close()
            raise FerruleError(
                f"backend '{self.id}' is not usable here: {'; '.join(reasons) or 'it is not registered'}"
            )
        return runtime

    def optimizer_options(self, **more: Any) -> OptimizerOptions:  # noqa: ANN401 as OptimizerOptions
        """Return optimizer options that include those of the backend."""
        return OptimizerOptions(model_options={self.id: self.model_options}, **more)


class SubjectRuntime(Runtime):
    """A runtime with the backend under test."""

    def __init__(self, subject: Subject, options: CreationOptions, registry: BackendRegistry) -> None:
        super().__init__(options, registry)
        self.subject = subject
        self.preferences = (subject.id, Neighbour.id)
        """Backends for a network: the one under test, and for what it does not support its neighbour."""

    def backend(self) -> Backend:
        """Return a new object of the backend under test."""
        return self.registry.create(self.subject.id)
