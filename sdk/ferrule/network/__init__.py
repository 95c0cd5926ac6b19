# SPDX-License-Identifier: Apache-2.0
"""Networks as users build, check and run them."""

from ferrule.network.execution import Observer
from ferrule.network.network import Network

__all__ = ["Network", "Observer"]
