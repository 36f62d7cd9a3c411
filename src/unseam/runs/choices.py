"""What the functions of this package let users choose, known without torch, so that `--help` is."""

from typing import Literal

DIAGNOSIS_POINTS = 1000  # rows at which a member's decoder is differentiated
ExportFormat = Literal["onnx", "pt2", "torchscript", "safetensors"]
Which = Literal["held-out", "trained", "all", "full", "left-out"]  # rows of the data
