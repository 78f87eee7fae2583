"""A fitted classifier for other runtimes: columns, nets and labels as one ONNX graph."""

from driftquilt.integrations.onnx.classifier import OUTPUTS, describe_inputs, to_onnx

__all__ = ["OUTPUTS", "describe_inputs", "to_onnx"]
