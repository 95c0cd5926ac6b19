# SPDX-License-Identifier: Apache-2.0
"""Operators that compute each element by itself."""
