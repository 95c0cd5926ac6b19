# SPDX-License-Identifier: Apache-2.0
"""The command line: parse, call, print."""

from ferrule.cli.main import main

__all__ = ["main"]
