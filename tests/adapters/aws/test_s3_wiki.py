"""The wiki in a bucket: the contract, and what only a bucket has to promise."""

import uuid

import pytest
from tests.adapters.aws.schema import make_bucket
from tests.adapters.contracts.wiki_contract import WikiContract

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.s3_wiki import S3Wiki
from wikikeeper.ports import Wiki


@pytest.fixture(scope="session")
def weed_bucket(weed: Clients) -> str:
    """One for all: each takes volumes of its own there, until there are none left."""
    return make_bucket(weed)


class TestS3WikiOnMoto(WikiContract):
    @pytest.fixture
    def wiki(self, moto: Clients) -> Wiki:
        return S3Wiki(moto.s3, make_bucket(moto))


class TestS3WikiOnWeed(WikiContract):
    @pytest.fixture
    def wiki(self, weed: Clients, weed_bucket: str) -> Wiki:
        return S3Wiki(weed.s3, weed_bucket, f"{uuid.uuid4().hex}/")

    def test_keys_below_a_prefix_are_listed_in_order(self, wiki: Wiki) -> None:
        """It is a file system at heart and lists folder by folder; S3 itself goes by the bytes of the whole key."""
        for key in ("n/a-b.md", "n/a.md", "n/a/b.md"):
            wiki.create(key, b"")

        assert sorted(wiki.keys("n/")) == ["n/a-b.md", "n/a.md", "n/a/b.md"]
