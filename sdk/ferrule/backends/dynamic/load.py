# SPDX-License-Identifier: Apache-2.0
"""Loads dynamic backends into a registry, with a report on every file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ferrule.backends.backend import Backend
from ferrule.backends.context import ISOLATED_TIMEOUT_S
from ferrule.backends.dynamic.paths import find_candidates, search_paths
from ferrule.backends.dynamic.probe import TIMEOUT_S, probe_all
from ferrule.backends.dynamic.report import LoadReport, Reason
from ferrule.backends.origin import Origin, OriginKind
from ferrule.backends.registry import BackendRegistry, DuplicateBackendError
from ferrule.errors import FerruleError

_LOG = logging.getLogger(__name__)

_QUIET = frozenset({Reason.NAME, Reason.DUPLICATE_FILE})
"""Reasons that need no attention: links to shared objects, and files that are not backends."""


def load_dynamic_backends(
    registry: BackendRegistry,
    path: Path | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    isolate: bool = False,
    answer_s: float = ISOLATED_TIMEOUT_S,
) -> tuple[LoadReport, ...]:
    """Register the dynamic backends of the search paths, or of one folder, and return the reports.

    There is one report per file and per unusable folder. Each file is first tried in a child process, for at most
    `timeout_s` seconds. A failure of one folder or file does not affect the others; it is reported and logged. If two
    backends have the same id, the first one is kept, by order of folders, then of names. A shared object is unloaded
    after its backend has been removed from the registry and the last object that it created is gone.

    With `isolate`, each shared object is loaded only into a process of its own, which has `answer_s` seconds for each
    answer: see `ferrule.backends.dynamic.isolation`.
    """
    override = None if path is None else str(path)
    found = list(find_candidates(search_paths(override)))
    tried = iter(probe_all([row.canonical or row.path for row in found if row.accepted], timeout_s=timeout_s))
    rows = [
        _load(registry, replace(next(tried), path=row.path), answer_s=answer_s if isolate else None)
        if row.accepted
        else row
        for row in found
    ]
    for row in rows:
        _log(row)
    if override and any(row.canonical is None and str(row.path) == override for row in rows):
        _LOG.warning('The given override path for dynamic backends "%s" is not valid', override)
    return tuple(rows)


def _load(registry: BackendRegistry, row: LoadReport, *, answer_s: float | None) -> LoadReport:
    """Register a backend: in this process, or in one of its own if that has a time to answer."""
    name, path = row.backend, row.canonical
    if not row.accepted or name is None or path is None:
        return row
    from ferrule.backends.dynamic.backend import backend_factory
    from ferrule.backends.dynamic.isolation import isolated_factory
    from ferrule.backends.dynamic.library import DynamicLibraryError, Library

    try:
        make: Callable[[], Backend] = (
            backend_factory(Library(path)) if answer_s is None else isolated_factory(name, path, answer_s)
        )
    except DynamicLibraryError as error:
        return replace(row, reason=Reason.NOT_LOADABLE, message=str(error))
    origin = Origin(kind=OriginKind.DYNAMIC, place=str(path))
    try:
        registry.register(name, make, origin=origin)
    except DuplicateBackendError:
        message = f"a backend with this id is already registered ({registry.origin(name)})"
        return replace(row, reason=Reason.DUPLICATE_ID, message=message)
    except FerruleError as error:
        return replace(row, reason=Reason.INVALID_ID, message=str(error))
    return row


def _log(row: LoadReport) -> None:
    if row.accepted:
        _LOG.info('Dynamic backend "%s" registered from "%s"', row.backend, row.path)
    elif row.reason in _QUIET:
        _LOG.debug('"%s": %s', row.path, row.message)
    elif row.reason is Reason.DUPLICATE_ID:
        _LOG.warning('Cannot register dynamic backend "%s" from "%s": %s', row.backend, row.path, row.message)
    elif row.reason is not None and row.reason.startswith("path-"):
        _LOG.warning("%s", row.message)
    else:
        _LOG.warning(
            'Cannot create a valid dynamic backend from the shared object file "%s": %s', row.path, row.message
        )
