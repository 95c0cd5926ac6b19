# SPDX-License-Identifier: Apache-2.0
"""Test support for users' own code: this package for firmware, adapters and drivers in C, `.backends` for backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._lazy import lazily

if TYPE_CHECKING:
    from ferrule.emulation.console import Console, ExpectationError
    from ferrule.nativelib import host_compiler
    from ferrule.testing.adapter import build_adapter, build_driver
    from ferrule.testing.board import Board, start
    from ferrule.testing.board_fixture import BoardFixture
    from ferrule.testing.calls import Call
    from ferrule.testing.cdata import CData
    from ferrule.testing.fakes import BalanceError, Fakes, MisuseError, Wire
    from ferrule.testing.loaded import Adapter
    from ferrule.testing.ownership import OwnershipError, OwnershipReport, check_ownership
    from ferrule.testing.platforms import CmsisFakes, ZephyrFakes
    from ferrule.testing.programs import build_program
    from ferrule.testing.pytest_plugin import AdapterBuilder
    from ferrule.testing.sanitizers import SanitizerError, run_sanitized, sanitizer_environment

__all__ = [
    "Adapter",
    "AdapterBuilder",
    "BalanceError",
    "Board",
    "BoardFixture",
    "CData",
    "Call",
    "CmsisFakes",
    "Console",
    "ExpectationError",
    "Fakes",
    "MisuseError",
    "OwnershipError",
    "OwnershipReport",
    "SanitizerError",
    "Wire",
    "ZephyrFakes",
    "build_adapter",
    "build_driver",
    "build_program",
    "check_ownership",
    "host_compiler",
    "run_sanitized",
    "sanitizer_environment",
    "start",
]

_HOMES = {
    "Adapter": "ferrule.testing.loaded",
    "AdapterBuilder": "ferrule.testing.pytest_plugin",
    "BalanceError": "ferrule.testing.fakes",
    "Board": "ferrule.testing.board",
    "BoardFixture": "ferrule.testing.board_fixture",
    "CData": "ferrule.testing.cdata",
    "Call": "ferrule.testing.calls",
    "CmsisFakes": "ferrule.testing.platforms",
    "Console": "ferrule.emulation.console",
    "ExpectationError": "ferrule.emulation.console",
    "Fakes": "ferrule.testing.fakes",
    "MisuseError": "ferrule.testing.fakes",
    "OwnershipError": "ferrule.testing.ownership",
    "OwnershipReport": "ferrule.testing.ownership",
    "SanitizerError": "ferrule.testing.sanitizers",
    "Wire": "ferrule.testing.fakes",
    "ZephyrFakes": "ferrule.testing.platforms",
    "build_adapter": "ferrule.testing.adapter",
    "build_driver": "ferrule.testing.adapter",
    "build_program": "ferrule.testing.programs",
    "check_ownership": "ferrule.testing.ownership",
    "host_compiler": "ferrule.nativelib",
    "run_sanitized": "ferrule.testing.sanitizers",
    "sanitizer_environment": "ferrule.testing.sanitizers",
    "start": "ferrule.testing.board",
}


__getattr__ = lazily(__name__, _HOMES)
