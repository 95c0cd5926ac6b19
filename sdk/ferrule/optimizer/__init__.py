# SPDX-License-Identifier: Apache-2.0
"""From a network to one whose every layer has a backend."""

from ferrule.optimizer.assignment import Assignment, assign_backends

__all__ = ["Assignment", "assign_backends"]
