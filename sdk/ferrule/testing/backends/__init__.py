# SPDX-License-Identifier: Apache-2.0
"""Families of tests that every backend with a host face must pass; they need pytest.

A vendor's test module has one class per backend::

    class TestAcmeNpu(BackendFamily):
        @pytest.fixture(scope="class")
        @classmethod
        def subject(cls):
            return Subject.of_folder("AcmeNpu", "acme_npu")
"""

from ferrule.testing.backends.fallback import FallbackFamily
from ferrule.testing.backends.family import Family
from ferrule.testing.backends.firmware import FirmwareFamily
from ferrule.testing.backends.layers import LayerSupportFamily, WorkloadFamily
from ferrule.testing.backends.memory import HandleFamily, MemoryFamily
from ferrule.testing.backends.networks import EndToEndFamily, check_network
from ferrule.testing.backends.running import ContextFamily, ObjectFamily, RuntimeFamily
from ferrule.testing.backends.subgraphs import SubgraphFamily
from ferrule.testing.backends.subject import Subject

__all__ = [
    "BackendFamily",
    "ContextFamily",
    "EndToEndFamily",
    "FallbackFamily",
    "Family",
    "FirmwareFamily",
    "HandleFamily",
    "LayerSupportFamily",
    "MemoryFamily",
    "ObjectFamily",
    "RuntimeFamily",
    "SubgraphFamily",
    "Subject",
    "WorkloadFamily",
    "check_network",
]


class BackendFamily(
    ObjectFamily,
    LayerSupportFamily,
    WorkloadFamily,
    SubgraphFamily,
    HandleFamily,
    MemoryFamily,
    ContextFamily,
    RuntimeFamily,
    EndToEndFamily,
):
    """Tests of all interfaces of a backend with a host face, the same for each backend."""
