"""Whatever the caller holds becomes arrays: rows become float32, labels and segments become codes.

Read the modules in this order: `columns`, `table`, `encoder`, `codes`; then `in_place`, `arrow`
and `encoded`, which do the same for tables that are not loaded.
"""
