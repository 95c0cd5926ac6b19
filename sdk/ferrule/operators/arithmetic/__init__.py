# SPDX-License-Identifier: Apache-2.0
"""Arithmetic that operators share: fixed point, rules of rounding, matrix products, bounds of errors."""
