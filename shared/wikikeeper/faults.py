"""What may be logged of a fault whose message may quote a stranger."""

import traceback
from pathlib import PurePath

from wikikeeper.errors import Unusable

FRAMES = 3
"""Of a fault's own places in the code: enough to find it by."""


def described(error: Exception) -> dict[str, object]:
    """Its kind and its places in the code. Its message may quote a page, unless it was made for people."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    said = {"mend": str(error)} if isinstance(error, Unusable) else {}
    return {"cause": type(error).__name__, "where": " > ".join(places), **said}
