"""Bring the README's table of settings up to date: `make readme`. The test of the README compares with the same text."""

from pathlib import Path

from wikikeeper.settings import markdown_table

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- settings: made by `make readme` -->\n", "<!-- end of settings -->"


def with_table(readme: str) -> str:
    """The README with the table between its two marks."""
    head, rest = readme.split(BEGIN)
    return head + BEGIN + markdown_table() + END + rest.split(END)[1]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text("utf-8")), "utf-8")
