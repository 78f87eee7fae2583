"""A fitted classifier for other runtimes: columns, nets and labels as one ONNX graph."""
