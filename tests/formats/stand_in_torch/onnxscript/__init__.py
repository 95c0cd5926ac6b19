# SPDX-License-Identifier: Apache-2.0
"""Stands in for onnxscript, which the exporter asks for alone."""
