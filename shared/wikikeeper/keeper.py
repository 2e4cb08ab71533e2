"""The Keeper: the four questions put to a decision model over any Decider."""

from collections.abc import Sequence

from wikikeeper.models import Topic
from wikikeeper.policy import questions
from wikikeeper.ports import Decider, Judged


class QuestioningKeeper:
    """Asks one decision model about one page. Thread-safe if its Decider is."""

    question_version = questions.VERSION

    def __init__(self, decider: Decider, *, secret: bytes, quote_max_chars: int) -> None:
        self._decider = decider
        self._secret = secret
        self._quote_max_chars = quote_max_chars

    @property
    def model(self) -> str:
        return self._decider.model

    def judge(self, topic: Topic, title: str, paragraphs: Sequence[str]) -> Judged:
        options = questions.offered(topic, paragraphs)
        request = questions.ask(
            topic, title, paragraphs, options, secret=self._secret, quote_max_chars=self._quote_max_chars
        )
        reply = self._decider.decide(request)
        return Judged(judgement=questions.read(reply, options), reply=reply, offered=options)
