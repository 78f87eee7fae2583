"""What each setting of the service means, in one line, with its default in brackets.

The command line's help and the docs say the same words; they are apart from the settings
themselves so that `driftquilt --help` needs no web package.
"""

from __future__ import annotations

__all__ = ["WORDS"]

WORDS = {
    "store": "Folder that keeps the streams and the tokens (state).",
    "host": "Address to listen on (127.0.0.1); any but this machine's own needs a token.",
    "port": "Port to listen on (8321); 0 takes a free one.",
    "max_body_bytes": "Largest body of a request, in bytes (8,388,608).",
    "max_rows": "Most rows of one request (10,000).",
    "max_streams": "Most streams (100).",
    "max_waiting": "Most predicted rows that wait for their labels, per stream (100,000).",
    "max_waiting_bytes": "Most bytes that such rows take on the disk, per stream (268,435,456).",
    "max_backlog": "Most labelled rows that wait to be learned, per stream (50,000).",
    "max_backlog_bytes": "Most bytes of requests that wait so, per stream (67,108,864).",
    "max_connections": "Most open connections, those of the live page among them (1,000).",
    "rate": "Most requests per second, per token (5,000).",
    "body_seconds": "Longest time that a request's body may take to arrive (30).",
    "drain_seconds": "Longest time that open requests get at shutdown (20).",
    "n_workers": "Processes that train (1).",
    "feeds": "Brokers that feed streams, as STREAM=URL; again for each (none).",
    "answers": "Where a fed stream's answers and events go, as STREAM=URL; again for each (none).",
    "log_format": "Lines of json for machines, or text for people (json).",
    "log_level": "The least that is logged: debug, info, warning or error (info).",
}
