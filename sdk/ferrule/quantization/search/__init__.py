# SPDX-License-Identifier: Apache-2.0
"""The search for the best precision of each layer within a budget: the settings, their models, and the front."""

from __future__ import annotations
