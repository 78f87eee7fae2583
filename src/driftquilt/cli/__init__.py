"""The command line: parse, call, print. One file per command, each imported when it is called."""
