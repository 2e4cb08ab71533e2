"""Who may do what in the stack, and who is told when something is amiss. On the transformed template."""

import io
import json
import operator
import re
from typing import Any

import pytest
from tests.infra.conftest import ROOT
from tests.infra.stack_parts import (
    FUNCTIONS,
    QUEUE_OF,
    WORKERS,
    allowed,
    as_list,
    of_type,
    refuses_plain_http,
    statements,
)

from wikikeeper.adapters.aws.dynamodb_items import ALERTS, FOUND
from wikikeeper.adapters.aws.json_log import JsonLog

# -- who may do what


def test_no_role_may_do_everything_or_touch_everything(template: dict[str, Any]) -> None:
    for role in of_type(template, "AWS::IAM::Role"):
        properties = template["Resources"][role]["Properties"]
        assert "ManagedPolicyArns" not in properties, role
        for statement in statements(template, role):
            assert not [action for action in as_list(statement["Action"]) if "*" in action], role
            assert "*" not in as_list(statement["Resource"]), role


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_a_role_of_its_own_and_takes_from_its_own_queue_alone(
    template: dict[str, Any], name: str
) -> None:
    may = allowed(template, f"{name}Role")
    own = {f"{QUEUE_OF[name]}Queue"} if name in WORKERS else set()

    assert template["Resources"][name]["Properties"]["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    assert may.get("sqs:ReceiveMessage", set()) == may.get("sqs:DeleteMessage", set()) == own
    assert may["logs:PutLogEvents"] == {f"{name}Logs"}


@pytest.mark.parametrize(
    ("name", "queues"),
    [
        ("ScheduleCycle", {"ScheduleQueue", "JudgeQueue", "RuleDeadLetters"}),
        ("JudgeResult", {"JudgeQueue", "NoteQueue"}),
        ("WriteNote", set()),
        ("ReapStale", {"ScheduleQueue", "JudgeQueue", "NoteQueue"}),
        ("Web", {"ScheduleQueue"}),
    ],
)
def test_a_function_sends_what_its_workflow_returns_and_what_it_cannot_parse(
    template: dict[str, Any], name: str, queues: set[str]
) -> None:
    aside = {f"{QUEUE_OF[name]}DeadLetters"} if name in WORKERS else set()

    assert allowed(template, f"{name}Role")["sqs:SendMessage"] == queues | aside


def test_notes_are_written_by_the_note_writer_moved_by_the_pages_and_topics_written_by_nobody(
    template: dict[str, Any],
) -> None:
    writers = {name: allowed(template, f"{name}Role").get("s3:PutObject", set()) for name in FUNCTIONS}

    assert writers == {
        "ScheduleCycle": set(),
        "JudgeResult": {"${Bucket.Arn}/pages/*"},
        "WriteNote": {"${Bucket.Arn}/wiki/inbox/awaiting/*"},
        "ReapStale": set(),
        "Web": {"${Bucket.Arn}/wiki/inbox/completed/*"},
    }


def test_nothing_is_deleted_from_the_table_but_alerts_and_lists_of_finds_that_are_over(
    template: dict[str, Any],
) -> None:
    deleting = [
        (name, statement.get("Condition"))
        for name in FUNCTIONS
        for statement in statements(template, f"{name}Role")
        if "dynamodb:DeleteItem" in as_list(statement["Action"])
    ]

    alerts_alone, finds_alone = (
        {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [partition]}} for partition in (ALERTS, FOUND)
    )
    assert deleting == [("ScheduleCycle", alerts_alone), ("JudgeResult", alerts_alone), ("ReapStale", finds_alone)]


def test_only_the_pages_may_delete_from_the_wiki_and_only_notes_that_they_move(template: dict[str, Any]) -> None:
    deleting = {name: allowed(template, f"{name}Role").get("s3:DeleteObject") for name in FUNCTIONS}

    assert deleting == dict.fromkeys(WORKERS) | {
        "Web": {"${Bucket.Arn}/wiki/inbox/awaiting/*", "${Bucket.Arn}/wiki/inbox/completed/*"}
    }


def test_nothing_may_scan_the_table_or_change_the_stack(template: dict[str, Any]) -> None:
    actions = {action for name in FUNCTIONS for action in allowed(template, f"{name}Role")}

    assert {action.partition(":")[0] for action in actions} == {"logs", "sqs", "dynamodb", "s3"}
    assert not actions & {"dynamodb:Scan", "dynamodb:DeleteTable", "dynamodb:UpdateTable"}


def test_the_user_of_functions_on_modal_may_do_what_the_functions_may_on_lambda(template: dict[str, Any]) -> None:
    [block] = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "modal.md").read_text(), re.DOTALL)
    documented: dict[str, set[str]] = {}
    for statement in json.loads(block)["Statement"]:
        for action in as_list(statement["Action"]):
            documented.setdefault(action, set()).update(as_list(statement["Resource"]))
    names = {"Table": "arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE", "Bucket": "arn:aws:s3:::BUCKET"}
    needed: dict[str, set[str]] = {}
    for name in FUNCTIONS:
        for action, resources in allowed(template, f"{name}Role").items():
            if action.startswith(("dynamodb:", "s3:")):
                arns = {re.sub(r"\$\{(\w+)\.Arn\}|^(\w+)$", lambda it: names[it[1] or it[2]], on) for on in resources}
                needed.setdefault(action, set()).update(arns)

    assert documented.keys() == needed.keys()
    assert all(needed[action] <= documented[action] for action in needed)
    everything = set().union(*needed.values())
    assert set().union(*documented.values()) == everything


def test_the_rules_may_start_the_tick_and_send_the_sweep(template: dict[str, Any]) -> None:
    trust = template["Resources"]["RulesRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert allowed(template, "RulesRole") == {
        "lambda:InvokeFunction": {"ScheduleCycle"}, "sqs:SendMessage": {"ReapQueue", "RuleDeadLetters"},
    }  # fmt: skip
    assert trust[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


# -- alarms


def test_there_is_an_alarm_for_each_place_of_dead_letters(template: dict[str, Any]) -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in of_type(template, "AWS::CloudWatch::Alarm").values()
        if alarm["Namespace"] == "AWS/SQS"
    }

    assert watched == {name for name in of_type(template, "AWS::SQS::Queue") if name.endswith("DeadLetters")}


def test_every_alarm_goes_to_the_topic_which_only_alarms_of_this_account_write_to(template: dict[str, Any]) -> None:
    policy = of_type(template, "AWS::SNS::TopicPolicy")["AlarmsPolicy"]
    [allow] = [statement for statement in policy["PolicyDocument"]["Statement"] if statement["Effect"] == "Allow"]

    assert all(
        alarm["AlarmActions"] == [{"Ref": "Alarms"}] for alarm in of_type(template, "AWS::CloudWatch::Alarm").values()
    )
    assert allow["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allow["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert refuses_plain_http(policy, "sns:Publish")


def test_a_person_is_told_of_alarms_if_one_was_named(template: dict[str, Any]) -> None:
    told = template["Resources"]["Told"]

    assert told["Condition"] == "SomebodyIsTold"
    assert told["Properties"] == {
        "TopicArn": {"Ref": "Alarms"}, "Protocol": "email", "Endpoint": {"Ref": "AlarmEmail"}
    }  # fmt: skip


def own_alarms(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Those on what the functions themselves report."""
    alarms = of_type(template, "AWS::CloudWatch::Alarm")
    return {name: alarm for name, alarm in alarms.items() if alarm["Namespace"] == {"Ref": "AWS::StackName"}}


def alarmed(alarm: dict[str, Any], hours: list[int | None], quiet_hours: int = 73) -> bool:
    """Whether CloudWatch would raise an alarm after these hours, as its documentation says; None: no data, as nothing ran."""
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (3600, {"Ref": "QuietHours"})
    missing = {"breaching": True, "notBreaching": False}[alarm["TreatMissingData"]]
    compared = {"LessThanThreshold": operator.lt, "GreaterThanOrEqualToThreshold": operator.ge}
    breaching = compared[alarm["ComparisonOperator"]]
    looked_at = ([None] * quiet_hours + hours)[-quiet_hours:]
    bad = sum(missing if value is None else breaching(value, alarm["Threshold"]) for value in looked_at)
    return bool(bad >= alarm.get("DatapointsToAlarm", quiet_hours))


@pytest.mark.parametrize(
    ("hours", "raised"),
    [
        ([0, 1, 0, 0], False),
        ([0, 4, 0, 0], False),  # many topics at once, one outage: the alert says so at once
        ([1, 0, 1], True),
        ([1] + [0] * 23 + [1], True),  # a topic that runs once a day
        ([1] + [0] * 71 + [1], True),  # on Friday and on Monday
        ([1] + [0] * 200 + [1], False),
        ([None, 1, None], False),
    ],
)
def test_cycles_that_are_skipped_twice_raise_an_alarm(
    template: dict[str, Any], hours: list[int | None], raised: bool
) -> None:
    alarm = own_alarms(template)["SkippedTwiceAlarm"]

    assert (alarm["MetricName"], alarm["Statistic"]) == ("cycle_skipped", "Sum")
    assert alarmed(alarm, hours) is raised


@pytest.mark.parametrize(
    ("hours", "raised"),
    [
        ([1] + [0] * 72, False),
        ([1] + [0] * 73, True),
        ([1] + [None] * 73, True),  # nothing ticks any more, so nothing is counted either
        ([0] * 72 + [1], False),
    ],
)
def test_silence_raises_an_alarm(template: dict[str, Any], hours: list[int | None], raised: bool) -> None:
    alarm = own_alarms(template)["QuietAlarm"]

    assert (alarm["MetricName"], alarm["Statistic"]) == ("cycle_done", "Sum")
    assert alarmed(alarm, hours) is raised


def test_a_stack_that_rests_is_not_scolded_for_its_silence(template: dict[str, Any]) -> None:
    alarms = {name: part for name, part in template["Resources"].items() if part["Type"] == "AWS::CloudWatch::Alarm"}

    assert {name for name, alarm in alarms.items() if "Condition" in alarm} == {"QuietAlarm", "WebErrorsAlarm"}
    assert alarms["QuietAlarm"]["Condition"] == "Ticking"
    assert template["Conditions"]["Ticking"] == {"Fn::Equals": [{"Ref": "Rules"}, "ENABLED"]}


@pytest.mark.parametrize(("name", "event"), [("Alert", "alert"), ("Escalation", "escalated")])
def test_what_needs_a_person_raises_an_alarm_the_first_time(template: dict[str, Any], name: str, event: str) -> None:
    alarm = own_alarms(template)[f"{name}Alarm"]

    assert (alarm["MetricName"], alarm["Statistic"], alarm["EvaluationPeriods"]) == (event, "Sum", 1)
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
    assert alarm["TreatMissingData"] == "notBreaching"


def test_pages_that_fail_raise_an_alarm_the_first_time(template: dict[str, Any]) -> None:
    """The URL answers 502 for a function that did not start, ran out of time or raised, so this counts them, too."""
    alarm = of_type(template, "AWS::CloudWatch::Alarm")["WebErrorsAlarm"]

    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "Url5xxCount", "Sum")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "Web"}}]
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
    assert alarm["TreatMissingData"] == "notBreaching"


def test_alarms_listen_to_events_that_the_workflows_report(template: dict[str, Any]) -> None:
    counts = list(of_type(template, "AWS::Logs::MetricFilter").values())
    counted = {(count["LogGroupName"]["Ref"], count["MetricTransformations"][0]["MetricName"]) for count in counts}
    own = own_alarms(template).values()

    assert {alarm["MetricName"] for alarm in own} == {event for _, event in counted}
    assert all(alarm["Namespace"] == {"Ref": "AWS::StackName"} and "Dimensions" not in alarm for alarm in own)
    for count in counts:
        [made] = count["MetricTransformations"]
        assert made["MetricNamespace"] == {"Ref": "AWS::StackName"}
        assert (made["MetricValue"], made["DefaultValue"], made.get("Dimensions")) == ("1", 0, None)
    sources = (ROOT / "shared" / "wikikeeper" / "workflows").glob("*.py")
    reported = {event for source in sources for event in re.findall(r'\.event\(\s*"(\w+)"', source.read_text())}
    assert {event for _, event in counted} <= reported
    # The judge's workflow stops a cycle, too, and that alerts. Only the reaper gives work up.
    assert {group for group, event in counted if event == "alert"} == {"ScheduleCycleLogs", "JudgeResultLogs"}
    assert {group for group, event in counted if event == "escalated"} == {"ReapStaleLogs"}


def test_a_count_finds_the_lines_that_functions_write(template: dict[str, Any]) -> None:
    written = io.StringIO()
    JsonLog(written, function="schedule_cycle").event("cycle_skipped", topic="herons", cause="loading")

    for count in of_type(template, "AWS::Logs::MetricFilter").values():
        event = count["MetricTransformations"][0]["MetricName"]
        assert count["FilterPattern"] == f'{{ $.event = "{event}" }}'
    assert json.loads(written.getvalue())["event"] == "cycle_skipped"
