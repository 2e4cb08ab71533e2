"""One workflow per function: a command in, the commands that follow out. State lives in the ports."""
