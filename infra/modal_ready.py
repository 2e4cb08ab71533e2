"""Before the functions are deployed to Modal: would they have what they need? `python -m infra.modal_ready`

Deployed without it they would fail once a minute, in a log that nobody reads.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.parameters import pages_fault

from wikikeeper.errors import Unusable
from wikikeeper.settings import Settings, load


def missing(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """What to do first, a sentence each."""
    if settings.aws.bucket is None:
        yield "set WIKIKEEPER_AWS__BUCKET and WIKIKEEPER_AWS__TABLE to the outputs Bucket and Table of the stack on AWS"
    if settings.keeper_base_url is None:
        yield "set WIKIKEEPER_LLAMA__BASE_URL to the address that the deployment of the model server printed"
    if (fault := pages_fault(settings)) is not None:
        yield fault
    if "aws" in environment.get("DEPLOY_TO", "").split() and environment.get("DEPLOY_RULES") != "DISABLED":
        yield "set DEPLOY_RULES=DISABLED: else the functions on Lambda work on the same stores, at the same time"


def main() -> int:
    with tempfile.TemporaryDirectory() as nowhere:  # no wikikeeper.toml: in the cloud the environment is all there is
        try:
            found = list(missing(load(Path(nowhere)), os.environ))
        except Unusable as error:
            found = [str(error)]
    for sentence in found:
        print(f"functions on Modal: {sentence}", file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
