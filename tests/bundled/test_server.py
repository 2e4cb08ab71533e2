import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from jevcompat.cli import main as jevcompat
from tests.adapters.decider_contract import DeciderContract, Served

from wikikeeper.bundled import MODEL, BundledServer
from wikikeeper.bundled.server import MOST_BYTES
from wikikeeper.models import Topic
from wikikeeper.policy.questions import ask, offered

NOUL = {"type": "noul", "instructions": "Is it about trams?"}
TRAMS = (
    "Line 6 will run to the harbour from next spring. The new trams are 42 metres long and have room for 260 people.",
    "The depot is being enlarged for them, which costs the city 18 million.",
)
BREAD = (
    "Knead the dough for ten minutes and let it rise overnight in the fridge.",
    "Bake the loaf at 240 degrees with steam, then at 200 degrees until it sounds hollow.",
)


@pytest.fixture(scope="module")
def client(bundled_server: BundledServer) -> Iterator[httpx.Client]:
    # A page takes about a second, much more where other work goes on.
    with httpx.Client(base_url=bundled_server.base_url, trust_env=False, timeout=120) as opened:
        yield opened


def body(**changes: object) -> dict[str, Any]:
    return {"model": "any", "state": "The tram stops here.", "questions": {"q": NOUL}} | changes


def about(brief: str, page: tuple[str, ...]) -> dict[str, Any]:
    """The Keeper's questions."""
    topic = Topic(slug="topic", title=brief, brief=brief)
    request = ask(topic, "", page, offered(topic, page), secret=b"test", quote_max_chars=400)
    return {
        "model": MODEL,
        "state": request.state,
        "questions": {
            name: {
                "type": question.type,
                "instructions": question.instructions,
                "criteria": question.options
                if question.type == "choice"
                else {"true": question.true, "false": question.false},
            }
            for name, question in request.questions.items()
        },
    }


def answers(client: httpx.Client, asked: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/systemone", json=asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["answers"]
    return found


class TestContract(DeciderContract):
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls, bundled_server: BundledServer) -> Served:
        return Served(bundled_server.base_url, MODEL, timeout=120)


def test_an_independent_suite_finds_the_wire_kept(
    bundled_server: BundledServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jevcompat(["test", bundled_server.base_url]) == 0
    assert "MUST 32/32, SHOULD 12/12" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("brief", "near", "far"),
    [
        ("New trams and tram lines", TRAMS, BREAD),
        ("Neue Straßenbahnen und ihre Linien", TRAMS, BREAD),
        ("How to bake bread", BREAD, TRAMS),
        ("Brot backen: Teigführung und Temperaturen", BREAD, TRAMS),
        ("パンの焼き方", BREAD, TRAMS),
    ],
)
def test_a_page_on_the_topic_is_told_from_another_in_any_language(
    client: httpx.Client, brief: str, near: tuple[str, ...], far: tuple[str, ...]
) -> None:
    on_topic, off_topic = (answers(client, about(brief, page))["useful"]["noul"] for page in (near, far))

    # Not "above one half": across languages this judge ranks well but is too shy, as its documentation says.
    assert on_topic > 10 * off_topic
    assert off_topic < 0.1


def test_the_paragraph_on_the_topic_is_the_best_quote(client: httpx.Client) -> None:
    page = (BREAD[0], TRAMS[0], BREAD[1])

    assert answers(client, about("New trams", page))["quotes"]["choice"] == "p02"


def test_no_ordinary_page_is_taken_for_an_attack(client: httpx.Client) -> None:
    assert all(answers(client, about("Anything", page))["injection"]["noul"] < 0.5 for page in (TRAMS, BREAD))


def test_the_same_question_gets_the_same_answer_also_beside_others(client: httpx.Client) -> None:
    asked = [about("New trams", TRAMS), about("Bread", BREAD)]
    alone = [answers(client, one) for one in asked]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: answers(client, one), asked * 3))

    assert together == alone * 3


def test_health_answers_while_a_page_is_being_read(client: httpx.Client) -> None:
    long = "\n\n".join(f"Paragraph {number}. " + "The tram runs to the harbour and back. " * 9 for number in range(10))
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(answers, client, body(state=long))
        asked = 0
        while not page.done():
            assert client.get("/health").json() == {"status": "ok"}
            asked += 1

    assert asked > 1


def test_it_says_what_it_is(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()

    assert [(model["id"], model["architecture"]["output_modalities"]) for model in listed["data"]] == [
        (MODEL, ["decisions"])
    ]
    assert client.post("/v1/systemone", json=body()).json()["model"] == MODEL


def test_option_names_come_back_as_they_came(client: httpx.Client) -> None:
    asked = body(
        questions={"q": {"type": "choice", "instructions": "Which?", "criteria": {"\ud83d": None, "é\0": "x"}}}
    )
    # Plain json, because httpx refuses half a surrogate pair.
    response = client.post("/v1/systemone", content=json.dumps(asked).encode())

    assert list(response.json()["answers"]["q"]["probabilities"]) == ["\ud83d", "é\0"]


def test_a_body_that_is_too_large_is_refused(client: httpx.Client) -> None:
    response = client.post("/v1/systemone", content=b" " * (MOST_BYTES + 1))

    assert response.status_code == 413
    assert response.json()["detail"]["error_type"] == "request_too_large"


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/systemone", 405), ("GET", "/nowhere", 404), ("POST", "/health", 405)]
)
def test_other_requests_are_refused_in_json(client: httpx.Client, method: str, path: str, status: int) -> None:
    response = client.request(method, path)

    assert response.status_code == status
    assert response.json()["detail"].keys() == {"error_type", "message"}


def test_what_is_invalid_is_refused_with_its_place(client: httpx.Client) -> None:
    response = client.post("/v1/systemone", json=body(questions={"q": {"type": "boolean"}}))

    assert response.status_code == 422
    assert [fault["loc"] for fault in response.json()["detail"]] == [["body", "questions", "q", "type"]]


def test_images_are_refused(client: httpx.Client) -> None:
    response = client.post("/v1/systemone", json=body(images=["data:image/png;base64,AAAA"]))

    assert response.status_code == 501
    assert response.json()["detail"]["error_type"] == "not_supported_error"
