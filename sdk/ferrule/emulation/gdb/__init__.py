# SPDX-License-Identifier: Apache-2.0
"""A server of GDB's remote serial protocol, for engines that lack one."""

from ferrule.emulation.gdb.connection import GdbConnection
from ferrule.emulation.gdb.stub import GdbStub, GdbTarget, Resume

__all__ = ["GdbConnection", "GdbStub", "GdbTarget", "Resume"]
