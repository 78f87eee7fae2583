"""Where rows come from: data files and pipes, of any size, as one Arrow table that is mapped."""
