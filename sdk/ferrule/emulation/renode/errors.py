# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between this process and Renode."""

from __future__ import annotations

from ferrule.errors import FerruleError


class RenodeError(FerruleError):
    """Renode refused a command, or said something that does not fit the protocol."""


class RenodeConnectionError(RenodeError):
    """Renode can't be reached, has closed the connection, or did not answer in time."""
