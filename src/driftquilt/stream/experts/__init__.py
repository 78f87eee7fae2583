"""The experts of a stream and their mixture: who answers a row, and how much each one counts.

`base` is the contract, `online` a net that learns from the first row on, `trained` Quilt's models,
`labels` what the last labels say; `mixture` weighs them, `evidence` finds drifts in them.
"""
