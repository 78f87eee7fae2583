"""Whatever the caller holds becomes arrays: rows become float32, labels and segments become codes.

Read the modules in this order: `columns`, `table`, `encoder`, `codes`.
"""
