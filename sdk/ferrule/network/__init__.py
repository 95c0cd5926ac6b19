# SPDX-License-Identifier: Apache-2.0
"""Networks, which users build, check and run."""

from ferrule.network.execution import operands_of, run_graph
from ferrule.network.network import Network
from ferrule.network.samples import random_sample
from ferrule.network.validation import check_kernel, check_layer
from ferrule.operators.interpreter import Observer

__all__ = ["Network", "Observer", "check_kernel", "check_layer", "operands_of", "random_sample", "run_graph"]
