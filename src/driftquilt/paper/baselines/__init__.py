"""The methods that the paper compares Quilt with, one per file."""
