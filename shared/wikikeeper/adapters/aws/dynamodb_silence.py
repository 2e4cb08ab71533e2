"""The run store's memory of silence: counters of cycles and notes, escalations, and how the model has been."""

import heapq
from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_items import (
    ESCALATIONS,
    MODELS,
    SIGHTINGS,
    SILENCES,
    at,
    body_of,
    expiry,
    micros,
    moment,
    present,
    some_micros,
    some_moment,
)
from wikikeeper.adapters.aws.dynamodb_listing import OPEN, entries, items
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar, Table
from wikikeeper.adapters.aws.packing import pack
from wikikeeper.models import Escalation, ModelSighting, Silence
from wikikeeper.policy.sightings import was_ahead


class Silences:
    """The part of `RunStore` about what went silent."""

    table: Table

    def silence(self, subject: str) -> Silence | None:
        item = self.table.get(_silence_key(subject))
        return None if item is None else _silence_from(item)

    def count_silence(self, silence: Silence, *, instead_of: Silence | None) -> bool:
        when, values = "attribute_not_exists(#pk)", {}
        if instead_of is not None:
            seen = _counters(instead_of)
            values = {f"seen_{name}": value for name, value in seen.items() if value is not None}
            when = " AND ".join(
                f"attribute_not_exists(#{name})" if value is None else f"#{name} = :seen_{name}"
                for name, value in seen.items()
            )
        return self.table.change(_silence_key(silence.subject), _counters(silence), when, values) is not None

    def heard(self, subject: str) -> None:
        # Mostly there is nothing to forget, and a look costs a fifth of a write that is refused.
        silence = self.silence(subject)
        if silence is not None and silence.nonresponses:
            self.table.change(_silence_key(subject), {"nonresponses": 0}, "#nonresponses > :none", {"none": 0})

    def escalate(self, escalation: Escalation) -> bool:
        return self.table.put_new(_escalation_item(escalation))

    def escalation(self, escalation: str) -> Escalation | None:
        item = self.table.get(_escalation_key(escalation))
        return None if item is None else _escalation_from(item)

    def escalations(self, *, undelivered: bool = False) -> Iterator[Escalation]:
        found: Iterator[Item]
        if undelivered:
            found = items(self.table, (key for _, key in entries(self.table, OPEN, ESCALATIONS, newest_first=True)))
        else:
            # Few a year, so they fit.
            every = self.table.query("#pk = :escalations", {"escalations": ESCALATIONS})
            found = iter(sorted(every, key=lambda item: str(item["at"]), reverse=True))
        for escalation in map(_escalation_from, found):
            if not undelivered or escalation.delivered is None:
                yield escalation

    def escalation_delivered(self, escalation: str, at: datetime) -> None:
        self.table.change(
            _escalation_key(escalation),
            {"delivered": micros(at), "open": None},
            "attribute_exists(#pk) AND attribute_not_exists(#delivered)",
        )

    def saw_model(self, sighting: ModelSighting) -> bool:
        # One item says how the model is; what it was goes to the history before it is written over, so that a crash in
        # between loses nothing, and of two who see the change one tells it.
        key = _model_key(sighting.model)
        item = self.table.get(key)
        if item is None:
            return self.table.put_new(_sighting_item(sighting))
        last = _sighting_from(item)
        alike = (last.condition, last.cause) == (sighting.condition, sighting.cause)
        if not was_ahead(last, sighting):
            if alike or sighting.since <= last.since:
                return False
            self.table.put_new(_sighting_past(last))
        now = {name: value for name, value in _sighting_item(sighting).items() if name not in {"pk", "sk"}}
        return self.table.change(key, now, "#since = :seen", {"seen": item["since"]}) is not None and not alike

    def model_history(self, model: str | None = None) -> Iterator[ModelSighting]:
        keeping, values = (None, {}) if model is None else ("#model = :model", {"model": model})
        past = self.table.query("#pk = :past", {"past": SIGHTINGS, **values}, keeping=keeping, newest_first=True)
        current = self.table.query("#pk = :models", {"models": MODELS, **values}, keeping=keeping)
        latest = sorted(map(_sighting_from, current), key=_place, reverse=True)
        since = {sighting.model: sighting.since for sighting in latest}
        before: ModelSighting | None = None
        for sighting in heapq.merge(latest, map(_sighting_from, past), key=_place, reverse=True):
            # What is now is in both after a crash; what a clock that was ahead put into the history is yet to come.
            if sighting != before and sighting.since <= since.get(sighting.model, sighting.since):
                yield sighting
            before = sighting


def _place(sighting: ModelSighting) -> tuple[datetime, str]:
    return sighting.since, sighting.model


def _counters(silence: Silence) -> dict[str, Scalar | None]:
    return {
        "nonresponses": silence.nonresponses,
        "since": micros(silence.since),
        "counted": micros(silence.counted),
        "cooldown_until": some_micros(silence.cooldown_until),
    }


def _silence_key(subject: str) -> Key:
    return Key(SILENCES, subject)


def _escalation_key(escalation: str) -> Key:
    return Key(ESCALATIONS, escalation)


def _model_key(model: str) -> Key:
    return Key(MODELS, model)


def _silence_from(item: Item) -> Silence:
    return Silence(
        subject=str(item["sk"]),
        nonresponses=int(item["nonresponses"]),
        since=moment(item["since"]),
        counted=moment(item["counted"]),
        cooldown_until=some_moment(item, "cooldown_until"),
    )


def _escalation_item(escalation: Escalation) -> Item:
    # It never expires: while what it tells of is parked, whatever went missing here would be told once more.
    key = _escalation_key(escalation.id)
    return present(
        {
            "pk": key.pk,
            "sk": key.sk,
            "open": ESCALATIONS if escalation.delivered is None else None,
            "at": at(escalation.raised, escalation.id),
            "delivered": some_micros(escalation.delivered),
            "body": pack(escalation.model_dump_json(exclude={"delivered"})),
        }
    )


def _escalation_from(item: Item) -> Escalation:
    escalation = Escalation.model_validate_json(body_of(item))
    return escalation.model_copy(update={"delivered": some_moment(item, "delivered")})


def _sighting_item(sighting: ModelSighting) -> Item:
    """How a model is now."""
    key = _model_key(sighting.model)
    return {
        "pk": key.pk,
        "sk": key.sk,
        "model": sighting.model,
        "since": micros(sighting.since),
        "body": pack(sighting.model_dump_json()),
    }


def _sighting_past(sighting: ModelSighting) -> Item:
    """How it was once."""
    place: Item = {"pk": SIGHTINGS, "sk": at(sighting.since, sighting.model), "expires": expiry(sighting.since)}
    return _sighting_item(sighting) | place


def _sighting_from(item: Item) -> ModelSighting:
    return ModelSighting.model_validate_json(body_of(item))
