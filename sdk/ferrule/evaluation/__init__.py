# SPDX-License-Identifier: Apache-2.0
"""Evaluates models on users' data, and runs sweeps over models, boards and options.

The package imports none of its modules, so that the processes of a sweep start quickly.
"""
