# SPDX-License-Identifier: Apache-2.0
"""Chains of layers that run row by row through line buffers, for firmware with the goal `memory`."""
