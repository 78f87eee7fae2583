"""Where rows, sealed segments, models and state wait, and what of them survives a crash."""
