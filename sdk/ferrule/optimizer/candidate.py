# SPDX-License-Identifier: Apache-2.0
"""Candidate backends: selects the usable ones among the preferences, each with its devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from ferrule._frozen import frozen
from ferrule.backends.backend import Backend, LayerSupport
from ferrule.backends.capability import ALL_OR_NOTHING, has_capability
from ferrule.backends.device import BackendId, Device, default_device
from ferrule.backends.guarded import guarded
from ferrule.backends.option import check_options
from ferrule.backends.target import Face
from ferrule.errors import FerruleError, UnsupportedError, unknown_name
from ferrule.graph import Graph, Layer
from ferrule.interface import either
from ferrule.optimizer.options import TRANSFERS, OptimizerOptions

STRICT_HINT = f"{either('without --no-fallback', 'with fallback=True')}, the next backend may run what the first cannot"


class BackendSource(Protocol):
    """A source of backends, such as a registry."""

    def create(self, name: str, /) -> Backend:
        """Return a new object of the backend; FerruleError states why it is not available."""
        ...

    def known_ids(self) -> Iterable[BackendId]:
        """Return the ids of all backends, even of those that are not available."""
        ...


@frozen(eq=False)
class Candidate:
    """A usable backend that layers may be assigned to."""

    backend: Backend
    support: LayerSupport
    options: OptimizerOptions
    devices: tuple[Device, ...]
    """The backend's devices, at least one; a layer without a hint gets the first."""

    @property
    def id(self) -> BackendId:
        """The backend's id."""
        return self.backend.id

    @property
    def all_or_nothing(self) -> bool:
        """Whether the backend runs either a whole network or no layer of it."""
        return self.has(ALL_OR_NOTHING)

    def has(self, capability: str) -> bool:
        """Whether the backend has a capability."""
        return has_capability(self.backend.capabilities(), capability)

    def refusal(self, graph: Graph, layer: Layer, device: Device) -> str:
        """Return the reason why the backend does not support a layer on one of its devices; "" if it does."""
        return self.support.supports(graph, layer, self.options.target(device)).reason

    @staticmethod
    def of(backend: Backend, options: OptimizerOptions) -> Candidate:
        """Return the candidate for a backend, with its devices from the options or, without any, its default device."""
        own = tuple(device for device in options.devices if device.backend == backend.id)
        asked = guarded(backend)
        return Candidate(
            backend=asked, support=asked.layer_support(), options=options, devices=own or (default_device(backend.id),)
        )


@frozen
class Hint:
    """The backend and the device that are tried first for a layer."""

    candidate: Candidate
    device: Device


@frozen
class Bench:
    """The candidate backends, in order of preference."""

    preferred: tuple[Candidate, ...]
    hints: Mapping[str, Hint] = field(default_factory=dict)
    """By layer name."""
    fallback: bool = True
    """Whether a layer that its first candidate refuses may go to the next."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The preferred candidates, then the candidates that only hints name."""
        hinted = (hint.candidate for hint in self.hints.values())
        return tuple({candidate.id: candidate for candidate in (*self.preferred, *hinted)}.values())

    def order(self, layer: str) -> tuple[Candidate, ...]:
        """Return the candidates to try for a layer: its hint first, then the preferences."""
        hint = self.hints.get(layer)
        order = self.preferred
        if hint is not None:
            order = (hint.candidate, *(c for c in self.preferred if c.id != hint.candidate.id))
        return order if self.fallback else order[:1]

    def device(self, layer: str, candidate: Candidate) -> Device:
        """Return the candidate's device that runs a layer: the layer's hint, or else the candidate's first device."""
        hint = self.hints.get(layer)
        return hint.device if hint is not None and hint.candidate.id == candidate.id else candidate.devices[0]

    def without(self, backends: Iterable[BackendId]) -> Bench:
        """Return the bench without the given backends."""
        gone = set(backends)
        return replace(
            self,
            preferred=tuple(candidate for candidate in self.preferred if candidate.id not in gone),
            hints={layer: hint for layer, hint in self.hints.items() if hint.candidate.id not in gone},
        )


def make_bench(
    graph: Graph, preferences: Sequence[str], registry: BackendSource, options: OptimizerOptions, messages: list[str]
) -> Bench:
    """Return the usable candidates; a message for each backend or hint left out, with the reason, goes to `messages`.

    Raises:
        FerruleError: no backend is given, one is unknown or listed twice, none is usable, a device or hint names
            something that does not exist, or a backend does not accept one of its options.
    """
    known = sorted(registry.known_ids())
    _check_preferences(preferences, known)
    _check_devices(options.devices, known)
    usable: dict[str, Candidate] = {}
    unusable: dict[str, str] = {}
    for name in preferences if options.fallback else preferences[:1]:
        found = _candidate(name, registry, options)
        if isinstance(found, Candidate):
            usable[name] = found
        else:
            unusable[name] = found
            messages.append(f"backend {name} is left out: {found}")
    if not usable:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unusable.items())
        raise FerruleError(
            f"none of the preferred backends can be used here. {reasons}"
            if options.fallback
            else f"the first backend cannot be used here. {reasons}",
            hint=f"backends: {', '.join(known)}" if options.fallback else STRICT_HINT,
        )
    hints: dict[str, Hint] = {}
    layers = dict.fromkeys(layer.name for layer in graph.layers)
    for layer, wish in options.hints.items():
        if layer not in layers:
            raise unknown_name("layer", layer, layers, where=f"in '{graph.name}'")
        hint = _hint(wish, usable, known, registry, options)
        if isinstance(hint, Hint):
            hints[layer] = hint
        elif options.fallback:
            messages.append(f"the hint '{wish}' for layer '{layer}' is ignored: {hint}")
        else:
            raise UnsupportedError(f"the hint '{wish}' for layer '{layer}' cannot be met: {hint}", hint=STRICT_HINT)
    bench = Bench(preferred=tuple(usable.values()), hints=hints, fallback=options.fallback)
    _check_model_options(bench, known, options, messages)
    _check_transfers(options, known)
    return bench


def _check_transfers(options: OptimizerOptions, known: Sequence[str]) -> None:
    for name, transfer in options.fallback_transfers.items():
        if name not in known:
            raise unknown_name("backend", name, known, where="to which a fallback belongs")
        if transfer not in TRANSFERS:
            raise FerruleError(f"the fallback of backend {name} is '{transfer}', expected {' or '.join(TRANSFERS)}")


def _check_model_options(bench: Bench, known: Sequence[str], options: OptimizerOptions, messages: list[str]) -> None:
    candidates = {str(candidate.id): candidate.backend for candidate in bench.candidates}
    for name, given in options.model_options.items():
        if name not in known:
            raise unknown_name("backend", name, known, where="to which a model option belongs")
        if name not in candidates:
            messages.append(f"the options of backend {name} have no effect: it is not a candidate")
            continue
        declared = candidates[name].model_options()
        check_options(name, declared, given)
        for option in declared or ():
            if option.name in given and not (option.host if options.face is Face.HOST else option.firmware):
                where = "on the host" if options.face is Face.HOST else "in firmware"
                messages.append(f"option '{option.name}' of backend {name} has no effect {where}")


def _check_preferences(preferences: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(preferences, str) or not preferences:
        raise FerruleError(
            "no backend is given, expected a list of at least one", hint=f"backends: {', '.join(known) or 'none'}"
        )
    for index, name in enumerate(preferences):
        if name not in known:
            raise unknown_name("backend", name, known)
        if name in preferences[:index]:
            raise FerruleError(f"backend {name} is listed twice in the preferences {list(preferences)}, expected once")


def _check_devices(devices: Sequence[Device], known: Sequence[str]) -> None:
    names: dict[str, BackendId] = {}
    for device in devices:
        if device.backend not in known:
            raise unknown_name(
                "backend", device.backend, known, where=f"of which device '{device.name}' is an instance"
            )
        if device.name in names:
            raise FerruleError(
                f"two devices have the name '{device.name}' ({names[device.name]} and {device.backend}), "
                "expected different names"
            )
        if device.name in known and device.name != device.backend:
            raise FerruleError(
                f"device '{device.name}' belongs to backend {device.backend} but has the name of another backend, "
                "expected a different name"
            )
        names[device.name] = device.backend


def _candidate(name: str, registry: BackendSource, options: OptimizerOptions) -> Candidate | str:
    """Return the candidate, or the reason why the backend cannot be used."""
    try:
        backend = guarded(registry.create(name))
    except FerruleError as error:
        return str(error)
    if options.face is Face.HOST and not backend.has_host_face():
        return "it has no host face: its layers run in firmware only"
    if options.face is Face.FIRMWARE and backend.firmware_target() is None:
        return "it has no firmware face: its layers run on the host only"
    return Candidate.of(backend, options)


def _hint(
    wish: str, usable: dict[str, Candidate], known: Sequence[str], registry: BackendSource, options: OptimizerOptions
) -> Hint | str:
    """Return the hint, or the reason why it is ignored; FerruleError if it names an unknown device."""
    name, _, wanted = wish.partition("/")
    if name not in known:
        return f"there is no backend '{name}'"
    candidate = usable.get(name) or _candidate(name, registry, options)
    if not isinstance(candidate, Candidate):
        return candidate
    devices = {device.name: device for device in candidate.devices}
    if wanted and wanted not in devices:
        raise unknown_name("device", wanted, devices, where=f"of backend {name}")
    device = devices[wanted] if wanted else candidate.devices[0]
    if device.pool:  # the first member has the layers of all
        device = next(each for each in candidate.devices if each.pool)
    return Hint(candidate=candidate, device=device)
