# SPDX-License-Identifier: Apache-2.0
"""Evaluates models on users' data, and runs sweeps over models, boards and options."""

from ferrule.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
