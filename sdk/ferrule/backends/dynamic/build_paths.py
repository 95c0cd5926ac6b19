# SPDX-License-Identifier: Apache-2.0
"""The folders in which an installation looks for dynamic backends; set by packagers at build time."""

BUILD_PATHS = ""
"""Absolute folders, separated by colons; if empty, dynamic backends are loaded only from the user's folders."""
