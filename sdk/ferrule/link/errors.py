# SPDX-License-Identifier: Apache-2.0
"""The faults of the link itself; `RunFailedError`, of a model's run, stands with the session."""

from __future__ import annotations

from ferrule.errors import FerruleError


class LinkError(FerruleError):
    """The firmware's answer is not what was expected; the message says both."""


class LinkTimeoutError(LinkError):
    """The firmware did not answer in time, retries included."""


class ProtocolVersionError(LinkError):
    """The firmware speaks another version of the protocol."""


class FirmwareError(LinkError):
    """The firmware refused a request by an error frame; `code` is its number."""

    def __init__(self, message: str, *, code: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
