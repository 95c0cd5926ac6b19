# SPDX-License-Identifier: Apache-2.0
"""From a network and a job to an inspection, a project, or a firmware and its runs."""

from ferrule.running.acl_classes import generate_acl
from ferrule.running.compilation import Firmware, adopt, compile, generate, inspect  # noqa: A004
from ferrule.running.request import RunRequest

__all__ = ["Firmware", "RunRequest", "adopt", "compile", "generate", "generate_acl", "inspect"]
