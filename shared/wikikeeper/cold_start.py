"""On Lambda: no looking for garbage while modules are loaded, nor for plugins.

Loading makes some hundred thousand objects, all of which stay; looking through them again and again is a tenth of a cold
start. And pydantic would read what each installed package says of itself, to find plugins that nobody installs. Imported
before all that is large.
"""

import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def loaded() -> None:
    """From here on garbage is looked for again, though never among what was loaded."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
