"""The choices that the functions of this package offer, known without torch for `--help`."""

from typing import Literal

DIAGNOSIS_POINTS = 1000  # rows at which a member's decoder is differentiated
ExportFormat = Literal["onnx", "pt2", "torchscript", "safetensors"]
Which = Literal["held-out", "trained", "all", "full", "left-out"]  # rows of the data
