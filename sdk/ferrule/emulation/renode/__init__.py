# SPDX-License-Identifier: Apache-2.0
"""Renode: clients for each of its servers, usable on their own, and the engine that runs a firmware in it.

Each client connects to a running Renode; `docs/renode.md` has an example of each.

- `RobotServer`: keywords over XML-RPC; the best way to control Renode, since failures are reported as errors.
- `Monitor`: the text console over telnet.
- `ExternalControl`: time, buses, pins and converters, in the protocol of 1.16 and in its successor.
- `SocketTerminal`: the bytes of a UART.
- `CosimulationPeer`: a device model behind the co-simulation socket of 1.15 and 1.16.
"""

from ferrule.emulation.renode.bridge import HEADER, BridgeMessage, BridgeServer, Kind, receive
from ferrule.emulation.renode.cosimulation import GETS, PUSHES, Action, CosimulationPeer, Message, WireFormat
from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError
from ferrule.emulation.renode.external_control import (
    ControlError,
    ExternalControl,
    FramedControl,
    LegacyControl,
    RenodeMachine,
    Width,
)
from ferrule.emulation.renode.monitor import Monitor
from ferrule.emulation.renode.robot import KeywordError, RobotServer, TerminalTester, UartLine
from ferrule.emulation.renode.stream import Stream
from ferrule.emulation.renode.terminal import SocketTerminal

__all__ = [
    "GETS",
    "HEADER",
    "PUSHES",
    "Action",
    "BridgeMessage",
    "BridgeServer",
    "ControlError",
    "CosimulationPeer",
    "ExternalControl",
    "FramedControl",
    "KeywordError",
    "Kind",
    "LegacyControl",
    "Message",
    "Monitor",
    "RenodeConnectionError",
    "RenodeError",
    "RenodeMachine",
    "RobotServer",
    "SocketTerminal",
    "Stream",
    "TerminalTester",
    "UartLine",
    "Width",
    "WireFormat",
    "receive",
]
