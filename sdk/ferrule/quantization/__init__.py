# SPDX-License-Identifier: Apache-2.0
"""From a float model to integers: ranges by the user's data, the integers themselves, and what each layer loses."""

from __future__ import annotations

from ferrule.quantization.model import QuantizedModel, quantize
from ferrule.quantization.search.budget import BoardBudget
from ferrule.quantization.search.search import FoundModel, search, search_models
from ferrule.quantization.search.trials import SearchRequest

__all__ = ["BoardBudget", "FoundModel", "QuantizedModel", "SearchRequest", "quantize", "search", "search_models"]
