"""The rules of wikikeeper as pure functions. Read these to know what it does and why."""
