"""Models and drifts in the places where teams keep theirs."""
