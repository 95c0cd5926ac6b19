# SPDX-License-Identifier: Apache-2.0
"""Woofles: the project's example accelerator, with its device model, its C driver and its backend."""

from ferrule.backends.woofles.backend import Woofles
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import WooflesModel
from ferrule.backends.woofles.translation import translate_in

__all__ = ["Command", "Woofles", "WooflesModel", "translate_in"]
