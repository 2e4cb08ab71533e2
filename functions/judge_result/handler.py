"""judge-result: up to ten results in one invocation, on threads: some fetch and read while others wait for the model."""

from wikikeeper.handling import Answer, Context, Event, batch, cloud
from wikikeeper.models import JudgeResult
from wikikeeper.workflows.judge_result import judge_result

THREADS = 10
"""A whole batch: each result has its thread, so that the longest of them is as long as the invocation."""


def handler(event: Event, context: Context) -> Answer:
    return batch(event, context, cloud("judge_result"), judge_result, JudgeResult, threads=THREADS)
