# SPDX-License-Identifier: Apache-2.0
"""Data sets: files, folders and generators of samples as the inputs of a model, with labels."""

from ferrule.evaluation.data.dataset import Chunk, DataSet
from ferrule.evaluation.data.opening import open_data
from ferrule.running.data_settings import AudioSettings, DataSettings

__all__ = ["AudioSettings", "Chunk", "DataSet", "DataSettings", "open_data"]
