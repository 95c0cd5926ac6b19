# SPDX-License-Identifier: Apache-2.0
"""The version of the SDK; generated files carry it."""

VERSION = "0.2.0"
