# SPDX-License-Identifier: Apache-2.0
"""Which backends and devices a network is divided over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.backends import Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.network import Network
from ferrule.optimizer import Face, OptimizedNetwork, OptimizerOptions, optimize

DEFAULT_BACKENDS = ("CpuAcc",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What the user says of backends; by default all goes to the board's own core."""

    backends: tuple[str, ...] = DEFAULT_BACKENDS
    """In order of preference."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """By layer: "Backend" or "Backend/device", tried before the preferences."""
    devices: tuple[Device, ...] = ()
    model_options: Mapping[str, ModelOptions] = field(default_factory=dict)
    """By backend."""
    registry: BackendRegistry | None = None
    """None for the process's own."""

    @property
    def source(self) -> BackendRegistry:
        """The registry that backends come from."""
        return self.registry or default_registry()

    def options(self, face: Face) -> OptimizerOptions:
        """Return the optimizer's options for one face."""
        return OptimizerOptions(face=face, hints=self.hints, devices=self.devices, model_options=self.model_options)


DEFAULT_DIVISION = Division()


def divide(network: Network, division: Division = DEFAULT_DIVISION, *, face: Face = Face.FIRMWARE) -> OptimizedNetwork:
    """Return the network divided over backends, for firmware or for the host.

    Raises:
        UnsupportedError: no backend takes some layer; the message has every backend's reason.
        FerruleError: a backend, device or layer that is named does not exist, or no backend has that face.
    """
    network.validate()
    return optimize(network, division.backends, division.source, division.options(face))
