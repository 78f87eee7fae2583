"""Where rows come from: data files and pipes, or the messages of a broker.

Files of any size become one Arrow table that is mapped; messages are read after a position.
"""
