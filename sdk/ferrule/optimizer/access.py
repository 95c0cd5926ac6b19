# SPDX-License-Identifier: Apache-2.0
"""The rules for a backend's access to a tensor in handles of another factory, with the reason for each choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from ferrule._frozen import frozen, positional
from ferrule.backends.backend import Backend
from ferrule.backends.device import BackendId
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemorySource,
    TensorHandleFactory,
)
from ferrule.graph import Layer, LayerType
from ferrule.optimizer.optimized import EdgeStrategy
from ferrule.optimizer.options import OptimizerOptions

PLAIN_ALIGNMENT_BYTES = 1
"""Workloads of backends without factories accept plain memory of any alignment."""

_OBSTACLES = {
    HandleCapability.PADDING_REQUIRED: "needs padding",
    HandleCapability.FALLBACK_IMPORT_DISABLED: "disables fallback imports",
}


@frozen
class Access:
    """How the layers of one backend access a tensor."""

    strategy: EdgeStrategy
    factory: FactoryId | None = None
    """The factory of the handle that the layers read; None for plain memory."""
    memory: MemorySource = MemorySource.UNDEFINED
    """If the tensor lies in fallback memory: the kinds of memory that its handles import."""
    target_memory: MemorySource = MemorySource.UNDEFINED
    """If the tensor's copy lies in fallback memory: the kinds of memory that its handles import."""
    alignment_bytes: int = 1
    """The alignment of that memory that suits both ends."""
    reason: str = ""
    """The reason for this strategy instead of a better one."""


Factories = Mapping[BackendId, tuple[TensorHandleFactory, ...]]
"""By backend that has layers: the factories whose handles its workloads can use, in order of preference."""


def handle_factories(backends: Iterable[Backend]) -> dict[BackendId, tuple[TensorHandleFactory, ...]]:
    """Return the factories that backends prefer, among those of all of them; of two with one id, the first."""
    found: dict[FactoryId, TensorHandleFactory] = {}
    preferences: dict[BackendId, Sequence[FactoryId]] = {}
    for backend in backends:
        for factory in backend.tensor_handle_factories(None):
            found.setdefault(factory.id, factory)
        preferences[backend.id] = backend.handle_factory_preferences()
    return {backend: tuple(found[key] for key in ids if key in found) for backend, ids in preferences.items()}


@frozen
class End:
    """One end of a connection: the factory of its handle, and the backend that uses the handle."""

    factory: TensorHandleFactory | None
    """None for plain memory."""
    backend: BackendId | None
    capabilities: frozenset[HandleCapability] = frozenset()
    """The factory's properties for the connection."""

    @staticmethod
    def of(
        factory: TensorHandleFactory | None,
        backend: BackendId | None,
        writer: Layer | None = None,
        reader: Layer | None = None,
    ) -> End:
        """Return an end, with its properties for the connection from one layer to another, if given."""
        found = frozenset() if factory is None else factory.capabilities(writer, reader)
        return End(factory=factory, backend=backend, capabilities=found)

    @property
    def id(self) -> FactoryId | None:
        """The factory's id; None for plain memory."""
        return None if self.factory is None else self.factory.id

    @property
    def maps(self) -> bool:
        """Whether the process can access the bytes through the handle."""
        return self.factory is None or self.factory.supports_map_unmap

    @property
    def import_flags(self) -> MemorySource:
        """The kinds of memory that the handle imports."""
        return MemorySource.MALLOC if self.factory is None else self.factory.import_flags

    @property
    def name(self) -> str:
        """The factory in messages."""
        return "plain memory" if self.factory is None else f"'{self.factory.id}'"

    def alignment_bytes(self, kinds: MemorySource) -> int:
        """Return the alignment that the handle needs of imported memory: of the first of these kinds."""
        kind = _first(self.import_flags & kinds)
        return self.factory.memory_alignment(kind) if self.factory is not None and kind else PLAIN_ALIGNMENT_BYTES

    @property
    def requires_memory(self) -> bool:
        """Whether the handle is shared with another backend in fallback memory."""
        return HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED in self.capabilities


@positional
class AccessRules:
    """The rules under the options of one optimisation.

    `kinds` are always the kinds that one allocator's memory is at the same time.
    """

    _factories: Factories
    _options: OptimizerOptions

    def access(
        self, source: End, writer: Layer | None, reader: Layer, backend: BackendId, kinds: MemorySource
    ) -> Access | None:
        """Return the best access of a layer, on a backend, to a tensor that another one writes; None if there is none.

        A DEBUG layer maps the tensor itself.
        """
        maps = reader.type is LayerType.DEBUG
        direct = self._direct(source, backend)
        if direct is not None and (source.maps or not maps):
            return direct
        source = End.of(source.factory, source.backend, writer, reader)
        ends = (End.of(each, backend, writer, reader) for each in self._factories.get(backend) or (None,))
        targets = [end for end in ends if end.maps or not maps]
        mapped = next((end for end in targets if end.maps), None)
        imports = [self._fallback(source, target, kinds) for target in targets]
        fallback = next((found for found in imports if isinstance(found, Access)), None)
        if fallback is not None and source.requires_memory:
            return fallback
        exports = [self._export(source, target) for target in targets]
        export = next((found for found in exports if isinstance(found, Access)), None)
        if export is not None:
            return export
        refusals = imports if source.requires_memory else exports
        reason = next((found for found in refusals if isinstance(found, str)), "")
        if not self._obstacle([source, *targets]):
            reason = "; ".join(filter(None, [reason, *self.import_refusals(source.backend, backend)]))
        if mapped is not None and source.maps:
            return Access(strategy=EdgeStrategy.COPY, factory=mapped.id, reason=reason)
        return fallback or self._copy_by_memory(source, [mapped] if mapped else targets, kinds, reason)

    def _copy_by_memory(self, source: End, targets: Sequence[End], kinds: MemorySource, reason: str) -> Access | None:
        """Return the access by a copy from or to fallback memory, for ends that cannot be mapped; None if none is."""
        memory = MemorySource.UNDEFINED if source.maps else self.memory_in_reach(source, kinds)
        if not source.maps and not memory:
            return None
        for target in targets:
            own = [] if target.maps else [self.memory_in_reach(target, each) for each in self._options.allocators]
            target_memory = next(filter(None, own), MemorySource.UNDEFINED)
            if target.maps or target_memory:
                reasons = [reason, *_unmapped(source, "from"), *_unmapped(target, "to")]
                return Access(
                    strategy=EdgeStrategy.COPY,
                    factory=target.id,
                    memory=memory,
                    target_memory=target_memory,
                    alignment_bytes=max(source.alignment_bytes(memory), target.alignment_bytes(target_memory)),
                    reason="; ".join(reasons),
                )
        return None

    def memory_in_reach(self, source: End, kinds: MemorySource) -> MemorySource:
        """Return the kinds of fallback memory that a handle imports and the process can access; UNDEFINED if none."""
        own = _first(source.import_flags & kinds)
        if not own or MemorySource.MALLOC not in kinds or self._obstacle([source], asked=False):
            return MemorySource.UNDEFINED
        return own | MemorySource.MALLOC

    def import_refusals(self, *backends: BackendId | None) -> list[str]:
        """Return the reasons, if known, of the backends that import none of the memory that an allocator has."""
        kinds = reduce(or_, self._options.allocators, MemorySource.UNDEFINED)
        found = []
        for backend in backends if self._options.import_enabled else ():
            factories = () if backend is None else self._factories.get(backend, ())
            if not any(factory.import_flags & kinds for factory in factories):
                found += [factory.import_refusal(kind) for factory in factories for kind in kinds]
        return list(dict.fromkeys(filter(None, found)))

    def _direct(self, source: End, reader: BackendId) -> Access | None:
        preferred = self._factories.get(reader, ())
        if source.factory is None:
            known = not preferred and source.backend == reader
        else:
            known = any(source.id == each.id for each in preferred)
        return Access(strategy=EdgeStrategy.DIRECT, factory=source.id) if known else None

    def _fallback(self, source: End, target: End, kinds: MemorySource) -> Access | str:
        """Return the access in memory that both ends import, or the reason why there is none."""
        obstacle = self._obstacle([source, target])
        if obstacle:
            return obstacle
        common = _first(source.import_flags & target.import_flags & kinds)
        own, other = common or _first(source.import_flags & kinds), common or _first(target.import_flags & kinds)
        if not own or not other:
            return (
                f"no allocator's memory suits both ends: {source.name} imports {_listed(source.import_flags)}, "
                f"{target.name} imports {_listed(target.import_flags)}"
            )
        need = "requires fallback memory" if source.requires_memory else "cannot be connected otherwise"
        kinds_of_both = f"both ends import {_listed(common)}"
        kinds_of_each = f"it imports {_listed(own)}, and {target.name} imports the same as {_listed(other)}"
        return Access(
            strategy=EdgeStrategy.FALLBACK_IMPORT,
            factory=target.id,
            memory=own | other,
            alignment_bytes=max(source.alignment_bytes(own), target.alignment_bytes(other)),
            reason=f"{source.name} {need}: {kinds_of_both if common else kinds_of_each}",
        )

    def _export(self, source: End, target: End) -> Access | str:
        """Return the access by an import of the writer's own memory, or the reason why there is none."""
        obstacle = self._obstacle([source, target])
        if obstacle:
            return obstacle
        if source.factory is None or target.factory is None:
            return "a backend without tensor handle factories neither exports nor imports"
        exported = source.factory.export_flags if source.maps else MemorySource.UNDEFINED
        common = exported & target.import_flags
        if not common:
            return f"{source.name} exports {_listed(exported)}, {target.name} imports {_listed(target.import_flags)}"
        return Access(
            strategy=EdgeStrategy.EXPORT,
            factory=target.id,
            alignment_bytes=target.alignment_bytes(common),
            reason=f"{target.name} imports the {_listed(common)} memory that {source.name} exports",
        )

    def _obstacle(self, ends: Iterable[End], *, asked: bool = True) -> str:
        """Return the reason why no memory is imported between these ends; `asked`: if the user's choice counts."""
        if not self._options.import_enabled:
            return "import_enabled is off"
        for end in ends:
            if asked and end.backend is not None and self._options.fallback_transfers.get(end.backend) == "copy":
                return f"the fallback of {end.backend} is 'copy'"
            for capability in end.capabilities:
                if capability in _OBSTACLES:
                    return f"{end.name} {_OBSTACLES[capability]}"
        return ""


def _unmapped(end: End, direction: str) -> list[str]:
    return [] if end.maps else [f"{end.name} cannot be mapped, so the copy is {direction} fallback memory"]


def _first(kinds: MemorySource) -> MemorySource:
    return next((kind for kind in MemorySource if kind in kinds), MemorySource.UNDEFINED)


def _listed(kinds: MemorySource) -> str:
    return " and ".join(str(kind.name) for kind in MemorySource if kind in kinds) or "nothing"
