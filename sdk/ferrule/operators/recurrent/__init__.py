# SPDX-License-Identifier: Apache-2.0
"""Operators with a state."""

MAX_STEPS = 64
"""The most steps of a recurrent layer that is written as layers of their own for each step, with the weights again."""
