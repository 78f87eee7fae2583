"""The streams of the paper: made exactly where they are synthetic."""
