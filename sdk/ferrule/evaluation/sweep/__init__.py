# SPDX-License-Identifier: Apache-2.0
"""Sweeps: models over boards, toolchains, engines, backends and options, on this machine or on a cluster."""

from ferrule.evaluation.sweep.campaign import Settings, carry_out_plan
from ferrule.evaluation.sweep.cluster import ClusterWorkers
from ferrule.evaluation.sweep.file import sweep_file_schema
from ferrule.evaluation.sweep.plan import Plan, read_plan
from ferrule.evaluation.sweep.processes import LocalWorkers
from ferrule.evaluation.sweep.results import ResultsFile
from ferrule.evaluation.sweep.table import write_parquet

__all__ = [
    "ClusterWorkers",
    "LocalWorkers",
    "Plan",
    "ResultsFile",
    "Settings",
    "carry_out_plan",
    "read_plan",
    "sweep_file_schema",
    "write_parquet",
]
