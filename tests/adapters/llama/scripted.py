"""A client whose server answers from a list and whose time only passes by sleeping."""

from collections.abc import Callable

import httpx
from pydantic import SecretStr
from tests.adapters.decider_contract import asking_about

from wikikeeper.adapters.llama.decide import LlamaDecider

BASE = "http://model.test:8080"
REQUEST = asking_about("birds")
GOOD = {"model": "m-1", "answers": {"about": {"type": "noul", "noul": 0.75}}, "usage": {"input_tokens": 9}}
KEY = "sk-canary-7f3a"

Handler = Callable[[httpx.Request], httpx.Response]


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Server:
    """Answers from a list, repeating the last one, and keeps what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = answers
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answer = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(handler: Handler, time: Time | None = None, *, base_url: str = BASE, timeout: float = 60) -> LlamaDecider:
    time = time or Time()
    return LlamaDecider(
        base_url,
        "decider",
        SecretStr(KEY),
        connect_timeout=5,
        timeout=timeout,
        transport=httpx.MockTransport(handler),
        sleep=time.sleep,
        jitter=lambda: 1.0,
        clock=time,
    )


def good() -> httpx.Response:
    return httpx.Response(200, json=GOOD)
