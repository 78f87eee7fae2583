"""The experts of a stream and their mixture: who answers a row, and how much each one counts.

`nets` has those that learn, one from the first row on and Quilt's newest model; `labels` what the
last labels say; `mixture` weighs them, `evidence` finds drifts in them.
"""
