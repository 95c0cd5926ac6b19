# SPDX-License-Identifier: Apache-2.0
"""Memory planning: assigns offsets in memory regions to buffers with sizes and lifetimes."""

from ferrule.memory.graph_plan import (
    DEFAULT_ALIGNMENT,
    GraphPlan,
    Requirements,
    ScratchNeed,
    plan_graph,
    scratch_name,
    views,
)
from ferrule.memory.lifetimes import Lifetime, lifetimes, scheduled_layers
from ferrule.memory.ordering import DEFAULT_STEPS, Ordering, measure_order, order_layers
from ferrule.memory.placement import ArenaOverflowError, MemoryPlan, Placement, RegionPlan, certify
from ferrule.memory.planner import plan
from ferrule.memory.region import Region, home
from ferrule.memory.request import Access, Alias, AliasKind, BufferKind, Overlap, Request, Tie, Untied
from ferrule.memory.search import Effort
from ferrule.memory.states import STATE_WORD, STATE_WORD_BYTES
from ferrule.memory.verify import PlanError, Schedule, Step, schedule_of_graph, verify

__all__ = [
    "DEFAULT_ALIGNMENT",
    "DEFAULT_STEPS",
    "STATE_WORD",
    "STATE_WORD_BYTES",
    "Access",
    "Alias",
    "AliasKind",
    "ArenaOverflowError",
    "BufferKind",
    "Effort",
    "GraphPlan",
    "Lifetime",
    "MemoryPlan",
    "Ordering",
    "Overlap",
    "Placement",
    "PlanError",
    "Region",
    "RegionPlan",
    "Request",
    "Requirements",
    "Schedule",
    "ScratchNeed",
    "Step",
    "Tie",
    "Untied",
    "certify",
    "home",
    "lifetimes",
    "measure_order",
    "order_layers",
    "plan",
    "plan_graph",
    "schedule_of_graph",
    "scheduled_layers",
    "scratch_name",
    "verify",
    "views",
]
