# SPDX-License-Identifier: Apache-2.0
"""The link between a host and the firmware: `docs/link.md` describes the protocol."""

from ferrule.link.channel import DEFAULT_BAUD, Channel, PipeChannel, SerialChannel, channel_pair
from ferrule.link.direct import BoardMemory, DirectTensors
from ferrule.link.errors import FirmwareError, LinkError, LinkTimeoutError, ProtocolVersionError
from ferrule.link.listening import ListeningChannel
from ferrule.link.protocol import (
    BuildInfo,
    CounterSource,
    Hello,
    LinkCall,
    LinkTensor,
    ModelInfo,
    SelfTest,
    StackUse,
    Status,
    status_text,
)
from ferrule.link.session import LinkRun, LinkSession, RunFailedError

__all__ = [
    "DEFAULT_BAUD",
    "BoardMemory",
    "BuildInfo",
    "Channel",
    "CounterSource",
    "DirectTensors",
    "FirmwareError",
    "Hello",
    "LinkCall",
    "LinkError",
    "LinkRun",
    "LinkSession",
    "LinkTensor",
    "LinkTimeoutError",
    "ListeningChannel",
    "ModelInfo",
    "PipeChannel",
    "ProtocolVersionError",
    "RunFailedError",
    "SelfTest",
    "SerialChannel",
    "StackUse",
    "Status",
    "channel_pair",
    "status_text",
]
