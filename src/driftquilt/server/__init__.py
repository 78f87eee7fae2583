"""The service: streams over HTTP, with a live page."""
