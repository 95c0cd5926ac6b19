# SPDX-License-Identifier: Apache-2.0
"""Pools and resizes of images."""
