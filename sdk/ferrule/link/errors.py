# SPDX-License-Identifier: Apache-2.0
"""The errors of the link itself; `RunFailedError`, for a failed run of the model, is in `session`."""

from __future__ import annotations

from ferrule.errors import FerruleError


class LinkError(FerruleError):
    """The link failed, or the firmware's answer was not the expected one; the message gives the details."""


class LinkTimeoutError(LinkError):
    """The firmware did not answer in time, even after all retries."""


class ProtocolVersionError(LinkError):
    """The firmware uses another version of the protocol."""


class FirmwareError(LinkError):
    """The firmware refused a request with an error frame; `code` is its error code."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code
