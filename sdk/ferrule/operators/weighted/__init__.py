# SPDX-License-Identifier: Apache-2.0
"""Operators that multiply data by weights."""
