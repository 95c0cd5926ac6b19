# SPDX-License-Identifier: Apache-2.0
"""Operators that combine elements along axes."""
