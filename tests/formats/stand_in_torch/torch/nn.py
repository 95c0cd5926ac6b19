# SPDX-License-Identifier: Apache-2.0
"""Modules, which compute nothing."""


class Module:
    """A module."""
