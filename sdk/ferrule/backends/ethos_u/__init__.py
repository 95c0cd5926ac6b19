# SPDX-License-Identifier: Apache-2.0
"""EthosU: the Ethos-U55 and U65 NPUs of Arm, with an open functional model."""

from ferrule.backends.ethos_u.backend import EthosU
from ferrule.backends.ethos_u.standalone import EthosUStream, StreamRun

__all__ = ["EthosU", "EthosUStream", "StreamRun"]
