# SPDX-License-Identifier: Apache-2.0
"""Where an installation looks for dynamic backends; who packages Ferrule sets it when building."""

BUILD_PATHS = ""
"""Absolute folders, separated by colons; empty: dynamic backends are loaded only from folders that the user names."""
