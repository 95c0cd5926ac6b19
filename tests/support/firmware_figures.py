# SPDX-License-Identifier: Apache-2.0
"""The exact figures of a firmware: instructions of an inference, flash and RAM."""

from __future__ import annotations

import re
from pathlib import Path

from public_models import COLLECTION, FURTHER, collection, located

import ferrule
from ferrule._frozen import frozen
from ferrule.emulation import Clock

MODELS = {
    "ic": "pretrainedResnet_quant",
    "kws": "kws_ref_model",
    "vww": "vww_96_int8",
    "ad": "ad01_int8",
}
"""The names of the MLPerf Tiny models' files, without .tflite."""
PUBLIC = {
    "alexa": "esphome/micro-wake-word-models: models/v2/alexa.tflite",
    "audio_preprocessor": (
        "tensorflow/tflite-micro: tensorflow/lite/micro/examples/micro_speech/models/audio_preprocessor_int8.tflite"
    ),
    "blazeface_front": "openmv/openmv: lib/models/blazeface_front_128.tflite",
    "catdog": "tum-ei-eda/mlonmcu-models: catdog/CNN_full_quantized.tflite",
    "catdog_f32": "tum-ei-eda/mlonmcu-models: catdog/CNN_model.tflite",
    "cifar10_f32": "tum-ei-eda/mlonmcu-models: cifar10/cifar10.tflite",
    "cnn_s": "tum-ei-eda/mlonmcu-models: cnn_s_quantized/cnn_s_quantized.tflite",
    "detection": "mit-han-lab/tinyengine: assets/detection.tflite",
    "dtln": "tensorflow/tflite-micro: tensorflow/lite/micro/examples/dtln/dtln_noise_suppression.tflite",
    "face_landmarks": "openmv/openmv: lib/models/face_landmarks_192.tflite",
    "fingerprint": (
        "SiliconLabs/mltk: "
        "cpp/shared/apps/fingerprint_authenticator/config/tflite/fingerprint_signature_generator.tflite"
    ),
    "fomo_face": "openmv/openmv: lib/models/fomo_face_detection.tflite",
    "hello_world": (
        "tensorflow/tflite-micro: tensorflow/lite/micro/examples/hello_world/models/hello_world_int8.tflite"
    ),
    "image_example1": "SiliconLabs/mltk: mltk/utils/test_helper/data/image_example1.tflite",
    "keyword_scrambled": "tensorflow/tflite-micro: tensorflow/lite/micro/models/keyword_scrambled_8bit.tflite",
    "keyword_spotting": (
        "SiliconLabs/mltk: cpp/shared/apps/audio_classifier/config/tflite/keyword_spotting_on_off_v3.tflite"
    ),
    "kws_m": "tum-ei-eda/mlonmcu-models: micro_kws_m_quantized/micro_kws_m_quantized.tflite",
    "kws_m_f32": "tum-ei-eda/mlonmcu-models: micro_kws_m_fp32/micro_kws_m_fp32.tflite",
    "lstm2_f32": "tum-ei-eda/mlonmcu-models: lstm2/lstm2.tflite",
    "magic_wand_f32": "tum-ei-eda/mlonmcu-models: magic_wand/magic_wand.tflite",
    "micro_speech": "tum-ei-eda/mlonmcu-models: micro_speech/micro_speech.tflite",
    "micro_speech_lstm": (
        "tensorflow/tflite-micro: third_party/xtensa/examples/micro_speech_lstm/micro_speech_lstm.tflite"
    ),
    "mnist_lstm": "tensorflow/tflite-micro: tensorflow/lite/micro/examples/mnist_lstm/trained_lstm_int8.tflite",
    "mnist_lstm_f32": "tensorflow/tflite-micro: tensorflow/lite/micro/examples/mnist_lstm/trained_lstm.tflite",
    "okay_nabu": "esphome/micro-wake-word-models: models/v2/okay_nabu.tflite",
    "palm_detection": "openmv/openmv: lib/models/palm_detection_full_192.tflite",
    "person_detect": "tensorflow/tflite-micro: tensorflow/lite/micro/models/person_detect.tflite",
    "qnn": "tum-ei-eda/mlonmcu-models: qnn_model/qnn_model.tflite",
    "resnet_f32": "mlcommons/tiny: benchmark/training/image_classification/trained_models/pretrainedResnet.tflite",
    "resnet_large": (
        "mlcommons/tiny: benchmark/training/image_classification/trained_models/pretrainedResnet_large_int8.tflite"
    ),
    "rnnoise": "tum-ei-eda/mlonmcu-models: 2sort/rnnoise_INT8.tflite",
    "rock_paper_scissors": (
        "SiliconLabs/mltk: cpp/shared/apps/image_classifier/config/tflite/rock_paper_scissors.tflite"
    ),
    "str_ww": "mlcommons/tiny: benchmark/training/streaming_wakeword/trained_models/str_ww_ref_model.tflite",
    "toycar_f32": (
        "mlcommons/tiny: "
        "benchmark/training/anomaly_detection/trained_models/ToyCar/baseline_tf23/model/model_ToyCar.tflite"
    ),
    "umatest_f32": "tum-ei-eda/mlonmcu-models: umatest/umatest.tflite",
    "vad": "esphome/micro-wake-word-models: models/v2/vad.tflite",
    "vww_f32": "mlcommons/tiny: benchmark/training/visual_wake_words/trained_models/vww_96_float.tflite",
    "vww_mcunet": "mit-han-lab/tinyengine: assets/vww.tflite",
    "yolo_lc": "openmv/openmv: lib/models/yolo_lc_192.tflite",
}
"""Other public models, as `public_models` names them. Those whose names end with _f32 are of float32."""
_LINK = re.compile(r"(.*\.)?(link(\.\d+)?|ferrule_fault_stack)")
"""The symbols of the test link's buffers and of the stack of the fault handler."""


@frozen
class Layer:
    """A layer with its instructions."""

    name: str
    type: str
    kernel: str
    instructions: int
    bound: int | None = None
    """What the best kernels known take at least."""


@frozen
class Figures:
    """The figures of one model's firmware; sizes in bytes."""

    exact: bool
    """Whether the outputs equal those of the numpy reference."""
    instructions: int
    flash: int
    ram: int
    """Without the stacks and the test link's buffers."""
    activations: int
    workspace: int
    layers: tuple[Layer, ...]
    macs: int = 0
    cycles: int | None = None
    """With the goal `time`: those of the core's and the board's model."""


def file_of(folder: Path, model: str) -> Path | None:
    """Return the file of a model of `MODELS` or `PUBLIC` in the folder; None if the folder lacks a public one."""
    if model in MODELS:
        return folder / f"{MODELS[model]}.tflite"
    (listed,) = (each for path in (COLLECTION, FURTHER) for each in collection(path) if each.name == PUBLIC[model])
    return located([listed], folder).get(listed.sha256)


def build(folder: Path, model: str, board: str, toolchain: str, goal: str) -> ferrule.Firmware:
    """Return the firmware of a model of the folder, at the toolchain's default optimization level."""
    path = file_of(folder, model)
    if path is None:
        raise FileNotFoundError(f"{folder} has no file of {PUBLIC[model]}")
    return ferrule.compile(path, board=board, toolchain=toolchain, goal=goal)


def measure(firmware: ferrule.Firmware) -> Figures:
    """Run the firmware on the default pattern and return its figures."""
    report = firmware.run(engine="qemu" if firmware.board.cpu.type == "cortex-m55" else "unicorn")
    flash, ram = report.memory.flash, report.memory.ram
    assert flash is not None  # the firmware's linker script is Ferrule's
    assert ram.total is not None
    link = sum(symbol.size_bytes for symbol in firmware.image.symbols if _LINK.fullmatch(symbol.name))
    return Figures(
        exact=report.verdict == "exact",
        instructions=report.count.per_inference,
        flash=flash.total,
        ram=ram.total - ram.stack_reserved - link,
        activations=report.memory.arena.activation_bytes,
        workspace=ram.workspace,
        layers=tuple(
            Layer(name=each.name, type=each.type, kernel=each.kernel, instructions=each.count, bound=each.bound)
            for each in report.layers
        ),
        macs=report.model.macs,
        cycles=firmware.run(engine="unicorn", clock=Clock.CYCLES).count.per_inference
        if firmware.job.goal == "time"
        else None,
    )
