# SPDX-License-Identifier: Apache-2.0
"""Errors in the communication with Renode."""

from __future__ import annotations

from ferrule.errors import FerruleError


class RenodeError(FerruleError):
    """Renode refused a command or violated the protocol."""


class RenodeConnectionError(RenodeError):
    """Renode cannot be reached, closed the connection or did not answer in time."""
