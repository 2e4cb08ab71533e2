"""wikikeeper: stateless functions that keep a Markdown knowledge base by themselves."""

__version__ = "0.1.0"
