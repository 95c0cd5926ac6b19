# SPDX-License-Identifier: Apache-2.0
"""What users call: load, compile, generate, run."""

from ferrule.facade.compilation import Firmware, compile  # noqa: A004
from ferrule.facade.division import Division, divide
from ferrule.facade.generation import DEFAULT_BOARD, emit, generate, load
from ferrule.facade.running import check_engine

__all__ = ["DEFAULT_BOARD", "Division", "Firmware", "check_engine", "compile", "divide", "emit", "generate", "load"]
