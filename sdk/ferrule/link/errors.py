# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.link.protocol import LinkCall


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


class RunFailedError(LinkError):
    """The model's run returned an error: `status` is its code, `failed_operator` the operator's index or None.

    `calls` are the calls of devices, if they were traced.
    """

    def __init__(
        self, message: str, *, status: int, failed_operator: int | None, calls: tuple[LinkCall, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.failed_operator = failed_operator
        self.calls = calls
