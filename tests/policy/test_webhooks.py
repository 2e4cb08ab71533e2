"""Whether a delivery is from whom it says it is."""

import base64
import hashlib
import hmac
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from wikikeeper.policy.webhooks import (
    MOST_SIGNATURES,
    Fault,
    body_key,
    github_fault,
    slack_fault,
    standard_fault,
    standard_key,
)
from wikikeeper.settings import Settings

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TOLERANCE = timedelta(minutes=5)
SECRET = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = base64.b64encode(b"another key of thirty-two bytes!").decode()
KEY = standard_key(SECRET)
ID, STAMP = "msg_p5jXN8AQM9LWM0D4loKWxJek", str(int(NOW.timestamp()))
BODY = b'{"kind": "cycle", "topic": "postgres"}'


def signed(body: bytes = BODY, secret: str = SECRET, delivery: str = ID, at: datetime = NOW) -> str:
    """As the library signs."""
    return Webhook(secret).sign(delivery, at, body.decode())


def standard(
    body: bytes = BODY,
    delivery: str | None = ID,
    timestamp: str | None = STAMP,
    signatures: str | None = None,
    keys: tuple[bytes, ...] = (KEY,),
    now: datetime = NOW,
) -> Fault | None:
    return standard_fault(
        body, delivery=delivery, timestamp=timestamp, signatures=signatures, keys=keys, now=now, tolerance=TOLERANCE
    )


def slack_signature(body: bytes, timestamp: str, key: bytes) -> str:
    return "v0=" + hmac.new(key, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()


def github_signature(body: bytes, key: bytes) -> str:
    return "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()


def with_bit_flipped(data: bytes, bit: int) -> bytes:
    place, mask = bit // 8 % len(data), 1 << bit % 8
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


# -- Standard Webhooks


def test_the_librarys_own_vector_is_accepted() -> None:
    fault = standard(
        b'{"test": 2432232314}',
        timestamp="1614265330",
        signatures="v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        now=datetime.fromtimestamp(1614265330, UTC),
    )

    assert fault is None


@pytest.mark.parametrize("secret", [SECRET, f"whsec_{SECRET}", OTHER, OTHER.rstrip("=")])
def test_what_the_library_signs_is_accepted(secret: str) -> None:
    assert standard(signatures=signed(secret=secret), keys=(standard_key(secret),)) is None


@given(
    body=st.text(max_size=200),
    delivery=st.text(st.characters(min_codepoint=0x2F, max_codepoint=0x7E), min_size=1, max_size=40),
    key=st.binary(min_size=24, max_size=64),
    skew=st.integers(-400, 400),
)
def test_it_agrees_with_the_library_on_what_is_signed(body: str, delivery: str, key: bytes, skew: int) -> None:
    """The library reads the clock itself, so a delivery is made around its now."""
    now = datetime.now(UTC)
    at = now + timedelta(seconds=skew)
    with suppress(UnicodeEncodeError):  # half a surrogate pair has no bytes
        body.encode()
        library = Webhook(key)
        stamp, signature = str(int(at.timestamp())), library.sign(delivery, at, body)
        headers = {"webhook-id": delivery, "webhook-timestamp": stamp, "webhook-signature": signature}
        try:
            library.verify(body, headers, json_parse=False)
        except WebhookVerificationError:
            theirs = False
        else:
            theirs = True
        ours = standard(
            body.encode(), delivery, stamp, signature, (standard_key(base64.b64encode(key).decode()),), now=now
        )
        if abs(abs(skew) - 300) > 2:  # the clock goes on between the two
            assert (ours is None) == theirs


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"delivery": None}, Fault.MISSING),
        ({"timestamp": None}, Fault.MISSING),
        ({"signatures": None}, Fault.MISSING),
        ({"signatures": ""}, Fault.MISSING),
        ({"delivery": "msg.1"}, Fault.MALFORMED),
        ({"delivery": "msg 1"}, Fault.MALFORMED),
        ({"delivery": "m" * 257}, Fault.MALFORMED),
        ({"timestamp": "abc"}, Fault.MALFORMED),
        ({"timestamp": f"{STAMP}.0"}, Fault.MALFORMED),
        ({"timestamp": f" {STAMP}"}, Fault.MALFORMED),
        ({"timestamp": f"-{STAMP}"}, Fault.MALFORMED),
        ({"timestamp": "١٧٧٢٤٥٢٨٠٠"}, Fault.MALFORMED),
        ({"timestamp": "9" * 400}, Fault.MALFORMED),
        ({"timestamp": str(int(NOW.timestamp()) - 301)}, Fault.TOO_OLD),
        ({"timestamp": str(int(NOW.timestamp()) + 301)}, Fault.TOO_NEW),
        ({"signatures": "garbage"}, Fault.MALFORMED),
        ({"signatures": signed().replace("v1,", "v2,")}, Fault.MALFORMED),
        ({"signatures": signed().replace("v1,", "v1a,")}, Fault.MALFORMED),
        ({"signatures": "v1,"}, Fault.MISMATCH),
        ({"signatures": "v1,größe"}, Fault.MISMATCH),
        ({"signatures": "v1,\udcff"}, Fault.MISMATCH),
        ({"signatures": signed() + "="}, Fault.MISMATCH),
        ({"signatures": signed(secret=OTHER)}, Fault.MISMATCH),
        ({"signatures": " ".join([signed()] * (MOST_SIGNATURES + 1))}, Fault.MALFORMED),
        ({"signatures": "v1," + "A" * 5000}, Fault.MALFORMED),
        ({"body": BODY.replace(b" ", b"")}, Fault.MISMATCH),
        ({"body": b""}, Fault.MISMATCH),
        ({"keys": ()}, Fault.MISMATCH),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused_with_the_reason(changed: dict[str, object], fault: Fault) -> None:
    given_ = {"signatures": signed()} | changed

    assert standard(**given_) is fault  # type: ignore[arg-type]


def test_an_id_cannot_lend_its_digits_to_the_timestamp() -> None:
    """As "a.<stamp>.<rest>" is how two deliveries would be signed, if an id could hold a full stop."""
    tricky = f"{STAMP}.{BODY.decode()}"
    signature = Webhook(SECRET).sign("a", NOW, tricky)

    assert standard(tricky.encode(), "a", STAMP, signature) is None
    assert standard(BODY, f"a.{STAMP}", STAMP, signature) is Fault.MALFORMED


@given(bit=st.integers(0, 8 * 200), what=st.sampled_from(["body", "delivery", "timestamp", "signatures"]))
def test_one_changed_bit_anywhere_is_refused(bit: int, what: str) -> None:
    parts = {"body": BODY, "delivery": ID.encode(), "timestamp": STAMP.encode(), "signatures": signed().encode()}
    parts[what] = with_bit_flipped(parts[what], bit)
    headers = {name: value.decode("latin-1") for name, value in parts.items() if name != "body"}  # as servers read them

    assert standard(parts["body"], headers["delivery"], headers["timestamp"], headers["signatures"]) is not None


@pytest.mark.parametrize("places", [1, 3])
def test_a_secret_can_be_changed_without_losing_a_delivery(places: int) -> None:
    old, new, both = KEY, standard_key(OTHER), (standard_key(OTHER), KEY)

    assert standard(signatures=signed(), keys=both) is None
    assert standard(signatures=signed(secret=OTHER), keys=both) is None
    assert standard(signatures=f"{signed()} {signed(secret=OTHER)}", keys=(new,)) is None
    assert standard(signatures=f"v1a,x {signed()} v9,y", keys=(old,)) is None
    assert standard(signatures=" ".join([signed()] * places), keys=(new,)) is Fault.MISMATCH


@given(skew=st.integers(-1000, 1000))
def test_a_delivery_is_believed_for_the_tolerance_and_no_second_longer(skew: int) -> None:
    fault = standard(signatures=signed(), now=NOW + timedelta(seconds=skew))

    assert fault is (None if abs(skew) <= 300 else Fault.TOO_OLD if skew > 0 else Fault.TOO_NEW)


# -- secrets


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "short", "not base64 at all, whatever one does!", "ä" * 40, SECRET[:-4]]
)
def test_a_secret_that_spells_no_key_is_refused_without_being_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match=r"base64|shorter") as refused:
        standard_key(secret)
    assert not secret or secret not in str(refused.value)
    if secret:
        with pytest.raises(ValidationError) as wrong:
            Settings(hooks={"cycle_secret": secret})
        assert secret not in str(wrong.value.errors(include_input=False))


@given(key=st.binary(min_size=24, max_size=70), prefix=st.sampled_from(["", "whsec_"]), padded=st.booleans())
def test_every_secret_that_the_settings_take_spells_its_key(key: bytes, prefix: str, padded: bool) -> None:
    text = base64.b64encode(key).decode()
    secret = prefix + (text if padded else text.rstrip("="))

    taken = Settings(hooks={"cycle_secret": secret}).hooks.cycle_secret

    assert taken is not None
    assert standard_key(taken.get_secret_value()) == key


@given(secret=st.from_regex(r"\A(whsec_)?[A-Za-z0-9+/]{28,60}={0,2}\Z"))
def test_the_settings_take_no_secret_that_spells_no_key(secret: str) -> None:
    try:
        Settings(hooks={"cycle_secret": secret})
    except ValidationError:
        return
    assert len(standard_key(secret)) >= 24


# -- GitHub


def test_githubs_documented_vector_is_accepted() -> None:
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

    assert github_fault(b"Hello, World!", signature=signature, keys=[b"It's a Secret to Everybody"]) is None


@pytest.mark.parametrize(
    ("signature", "fault"),
    [
        (None, Fault.MISSING),
        ("", Fault.MISSING),
        ("sha1=757107ea", Fault.MALFORMED),
        ("sha256=abc", Fault.MALFORMED),
        ("SHA256=" + "0" * 64, Fault.MALFORMED),
        ("sha256=" + "g" * 64, Fault.MALFORMED),
        ("sha256=" + "0" * 64 + "\n", Fault.MALFORMED),
        ("sha256=" + "0" * 64, Fault.MISMATCH),
        (github_signature(BODY, b"k").upper(), Fault.MALFORMED),
        (github_signature(BODY + b" ", b"k"), Fault.MISMATCH),
    ],
)
def test_githubs_signature_is_held_to_its_form(signature: str | None, fault: Fault) -> None:
    assert github_fault(BODY, signature=signature, keys=[b"k"]) is fault


@given(bit=st.integers(0, 8 * 200), of_body=st.booleans())
def test_one_changed_bit_of_githubs_is_refused(bit: int, of_body: bool) -> None:
    signature = github_signature(BODY, b"k")
    body = with_bit_flipped(BODY, bit) if of_body else BODY
    header = signature if of_body else with_bit_flipped(signature.encode(), bit).decode("latin-1")

    assert github_fault(body, signature=header, keys=[b"new", b"k"]) is not None
    assert github_fault(BODY, signature=signature, keys=[b"new", b"k"]) is None


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_a_body_is_known_by_its_bytes(one: bytes, other: bytes) -> None:
    assert (body_key(one) == body_key(other)) == (one == other)


# -- Slack


def slack(
    body: bytes = BODY,
    timestamp: str | None = STAMP,
    signature: str | None = None,
    keys: tuple[bytes, ...] = (b"k",),
    now: datetime = NOW,
) -> Fault | None:
    return slack_fault(body, timestamp=timestamp, signature=signature, keys=keys, now=now, tolerance=TOLERANCE)


def test_slacks_signature_is_accepted_with_the_old_and_the_new_secret() -> None:
    signature = slack_signature(BODY, STAMP, b"k")

    assert slack(signature=signature) is None
    assert slack(signature=signature, keys=(b"new", b"k")) is None
    assert slack(signature=signature, keys=(b"new",)) is Fault.MISMATCH


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"timestamp": None}, Fault.MISSING),
        ({"signature": None}, Fault.MISSING),
        ({"timestamp": "abc"}, Fault.MALFORMED),
        ({"signature": slack_signature(BODY, STAMP, b"k").replace("v0", "v1")}, Fault.MALFORMED),
        ({"signature": slack_signature(BODY, STAMP, b"k").upper()}, Fault.MALFORMED),
        ({"body": BODY + b" "}, Fault.MISMATCH),
        ({"now": NOW + timedelta(seconds=301)}, Fault.TOO_OLD),
        ({"now": NOW - timedelta(seconds=301)}, Fault.TOO_NEW),
    ],
)
def test_slacks_signature_is_held_to_its_form(changed: dict[str, object], fault: Fault) -> None:
    assert slack(**({"signature": slack_signature(BODY, STAMP, b"k")} | changed)) is fault  # type: ignore[arg-type]


@given(bit=st.integers(0, 8 * 200), what=st.sampled_from(["body", "timestamp", "signature"]))
def test_one_changed_bit_of_slacks_is_refused(bit: int, what: str) -> None:
    parts = {"body": BODY, "timestamp": STAMP.encode(), "signature": slack_signature(BODY, STAMP, b"k").encode()}
    parts[what] = with_bit_flipped(parts[what], bit)

    assert slack(parts["body"], parts["timestamp"].decode("latin-1"), parts["signature"].decode("latin-1")) is not None
