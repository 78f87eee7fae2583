"""From whatever the caller has to arrays: frames, files of any size, labels, one encoder.

Read the modules in this order: `calendar` (dates, and which columns belong together), `columns`
(one column), `frame` (rows in memory), `arrow` (rows in mapped files), `encoder` and its `kernels`,
`labels` (labels, segment ids, weights), `rows` (all of that for one fit). Files come before all
that: `source` (bytes), `csv_files`, `json_lines`, `column_types`, `files` (one mapped table).
`orders` is a small table to try things on.
"""

from __future__ import annotations

from driftquilt.lazy import lazy_names

# Looked up at first use: scikit-learn, which `labels` needs, takes a second to import.
_MODULES = {
    "arrow": (
        "ArrowFrame MappedFile SMALLEST_PIECE has_one_dictionary limit_memory note_read "
        "read_in_place"
    ),
    "calendar": "CLOCK_PARTS PARTS flatten from_arrow from_objects group sources",
    "column_types": (
        "ColumnFacts OURS blocks cast check_table common_type describe features find_column "
        "is_category is_number is_text leave_out present unused_warning"
    ),
    "columns": "FLOAT32_MAX is_missing",
    "encoder": "CATEGORIES_MAX Encoder",
    "files": "Data open_data write_table",
    "frame": (
        "Frame Label Row iter_rows read_at read_frame read_label read_label_list read_pair read_row"
    ),
    "labels": "Codes distinct_ints read_labels read_segments read_weights warn_of_order",
    "orders": "Orders load_orders",
    "rows": "Features Rows read_array",
    "source": "TextFormat find_files",
}

__all__ = [name for names in _MODULES.values() for name in names.split()]

__getattr__ = lazy_names(__name__, **_MODULES)
