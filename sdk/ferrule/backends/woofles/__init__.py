# SPDX-License-Identifier: Apache-2.0
"""Woofles: the project's own accelerator, as a device model, a driver in C and a backend."""

from ferrule.backends.woofles.backend import Woofles
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import WooflesModel
from ferrule.backends.woofles.translation import translate_in

__all__ = ["Command", "Woofles", "WooflesModel", "translate_in"]
