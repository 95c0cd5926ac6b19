# SPDX-License-Identifier: Apache-2.0
"""Trains a small int8 network on real digits and runs it on an emulated Cortex-M4, over the whole test set.

    python examples/digits/demo.py [FOLDER]

Writes digits.tflite, the held-out images.npy and labels.npy (for `ferrule evaluate`), and the generated firmware
project into FOLDER (default: build/digits). The exit code is 0 only if every output of the firmware equals the numpy
reference bit for bit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from training import accuracy, forward, load_digits, train

import ferrule
from ferrule.formats import to_tflite
from ferrule.report import print_report
from quantization import quantized_network


def main() -> int:
    """Train, quantise, export and load the network; build and run its firmware; compare the outputs."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/digits")
    folder.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    print(f"training on {len(digits.train_labels)} digits, {len(digits.test_labels)} held out")
    parameters = train(digits)
    model = folder / "digits.tflite"
    model.write_bytes(to_tflite(quantized_network(parameters, digits.train_images)))

    np.save(folder / "images.npy", digits.test_images.astype(np.float32))
    np.save(folder / "labels.npy", digits.test_labels)

    network = ferrule.load(model)
    images = digits.test_images
    (on_host,) = network.run([images], real=True)

    firmware = ferrule.compile(network, board="mps2-an386", out=folder / "firmware", progress=print)
    report = firmware.run([images], engine="unicorn", real=True)
    print_report(report.document, Console())

    floats = accuracy(forward(parameters, digits.test_images).logits, digits.test_labels)
    print(f"accuracy over {len(images)} held-out digits:")
    print(f"  float32, as trained       {floats:.2%}")
    print(f"  int8, numpy reference     {accuracy(on_host, digits.test_labels):.2%}")
    print(f"  int8, emulated Cortex-M4  {accuracy(report.outputs[0], digits.test_labels):.2%}")
    print(f"model: {model}   firmware: {firmware.elf}")
    equal = report.verdict is ferrule.Verdict.EXACT and np.array_equal(on_host, report.outputs[0])
    print("bit for bit equal" if equal else "DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
