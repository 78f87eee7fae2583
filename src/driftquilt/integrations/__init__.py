"""driftquilt inside other tools; each takes an extra of its name, and nothing is imported before.

onnx    a classifier as one ONNX graph (`QuiltClassifier.to_onnx`)
mlflow  models and the trainings of a stream in MLflow
river   a stream as a classifier or a regressor of river's
ray     trainings, histories in files and many streams on a cluster
"""
