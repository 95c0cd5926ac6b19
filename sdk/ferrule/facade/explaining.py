# SPDX-License-Identifier: Apache-2.0
"""Who takes each layer of a network, and why the others don't."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.backends import Backend
from ferrule.backends.context import BackendUnavailableError
from ferrule.facade.division import Division
from ferrule.network import Network
from ferrule.optimizer import LayerRow, explain
from ferrule.report.inspection import BackendPart, DivisionPart, RefusalPart, TakerPart


def explain_division(network: Network, division: Division) -> DivisionPart:
    """Return who takes each layer: its hint first, then the preferences in order; nothing is generated or run.

    Raises:
        FerruleError: a backend, or the layer of a hint, does not exist.
    """
    hinted = {layer: wish.partition("/") for layer, wish in division.hints.items()}
    for layer in hinted:
        network.layer(layer)
    names = dict.fromkeys((*division.backends, *(backend for backend, _, _ in hinted.values())))
    found = {name: _create(name, division) for name in names}
    unusable = {name: backend for name, backend in found.items() if isinstance(backend, str)}
    rows = explain(network, [backend for backend in found.values() if not isinstance(backend, str)])
    return DivisionPart(
        backends=tuple(_backend(name, backend) for name, backend in found.items()),
        layers=tuple(_taker(row, division, hinted.get(row.layer, ("", "", "")), unusable) for row in rows),
    )


def _create(name: str, division: Division) -> Backend | str:
    """Return the backend, or why it cannot be used here; FerruleError if there is none of that id."""
    try:
        return division.source.create(name)
    except BackendUnavailableError as error:
        return str(error)


def _backend(name: str, backend: Backend | str) -> BackendPart:
    if isinstance(backend, str):
        return BackendPart(id=name, host=False, firmware=False)
    return BackendPart(id=name, host=backend.has_host_face(), firmware=backend.firmware_target() is not None)


def _taker(row: LayerRow, division: Division, hint: tuple[str, str, str], unusable: Mapping[str, str]) -> TakerPart:
    refusals = dict(unusable) | {str(backend): reason for backend, reason in row.refusals}
    wished, _, wanted = hint
    asked = dict.fromkeys((wished, *division.backends) if wished else division.backends)
    taker = next((name for name in asked if name not in refusals), None)
    return TakerPart(
        layer=row.layer,
        backend=taker,
        device=None if taker is None else wanted if wanted and taker == wished else _device(taker, division),
        refusals=tuple(
            RefusalPart(backend=backend, reason=refusals[backend]) for backend in asked if backend in refusals
        ),
    )


def _device(backend: str, division: Division) -> str:
    return next((device.name for device in division.devices if device.backend == backend), backend)
