"""The paper, readable in one sitting: arrays in, values out.

Nothing here reads a file, looks at the clock, logs, or draws a random number that the
caller did not seed. Read the modules in this order: `segment`, `head`, `selection`,
`stopping`, `training`; then `sampling` and `gradients`, for long histories.
"""
