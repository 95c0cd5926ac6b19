# SPDX-License-Identifier: Apache-2.0
"""Plugins of tests/support for all tests: those of tests/, of the backends in sdk/, and of examples/."""

pytest_plugins = ("coverage_gate", "hypothesis_profile", "lanes", "not_run", "suite_order")
