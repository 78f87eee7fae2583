"""Live use: rows come one by one, drifts are found, and the model is renewed from its past."""
