"""One adaptation method per file, all behind `adapt(history, current) -> fitted model`."""
