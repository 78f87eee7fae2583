"""Whatever the caller holds becomes arrays: rows become float32, labels and segments become codes.

Read the modules in this order: `moments`, `objects`, `columns`, `header`, `table`, `encoder`,
`codes`; then `in_place` and `arrow`, which do the same for tables that are not loaded.
"""
