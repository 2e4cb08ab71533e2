"""The command line: one module per group of commands, errors as one clear line.

Exit codes: 0 done; 1 something needs a person (a cycle was skipped or stopped, a command failed, a quote no longer
holds, doctor found a fault); 2 unusable input or settings; 130 interrupted.
"""

from wikikeeper.cli.main import main

__all__ = ["main"]
