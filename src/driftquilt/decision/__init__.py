"""From a table to a decision that a person can approve, and from a table to a replayed stream.

Read the modules in this order: `columns`, `labels`, `spans`, `cutting`; then `layout`, `telling`,
`fitting`, `measure`, `values`, `words`, `decide`, `folder`; then `journal`, `replay`, `replayed`,
`baselines`.
"""
