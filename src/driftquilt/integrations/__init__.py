"""driftquilt inside of other tools: ONNX, MLflow, river and Ray."""
