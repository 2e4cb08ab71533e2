"""`python -m wikikeeper` is `wikikeeper`."""

from wikikeeper.cli import main

main()
