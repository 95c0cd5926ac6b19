# SPDX-License-Identifier: Apache-2.0
"""The errors of a runtime, except those about its inputs."""

from __future__ import annotations

from collections.abc import Callable

from ferrule.errors import FerruleError


class NetworkLoadError(FerruleError):
    """A network cannot be loaded: a backend is not usable here, refuses it, or lacks something that its layers need."""


class NetworkUnloadError(FerruleError):
    """A backend's context refuses the unload; the network stays loaded."""


class Faults:
    """Calls that are all made, though some fail; the failures become one error at the end."""

    def __init__(self) -> None:
        self._found: list[Exception] = []

    def during(self, call: Callable[..., object], *arguments: object) -> None:
        """Make a call and note its failure."""
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 - raised by `throw`
            self._found.append(error)

    def throw(self) -> None:
        """Raise the only failure unchanged, or one error with the messages of all; do nothing if no call failed."""
        if not self._found:
            return
        first = self._found[0]
        if len(self._found) == 1:
            raise first
        messages = [
            str(error) if isinstance(error, FerruleError) else f"{type(error).__name__}: {error}"
            for error in self._found
        ]
        hint = first.hint if isinstance(first, FerruleError) else None
        raise FerruleError(f"{len(messages)} faults: {'; '.join(messages)}", hint=hint) from first
