"""Who may do what in the stack, and who is told when something is amiss. On the transformed template."""

import io
import json
import re
from typing import Any

import pytest
from tests.infra.conftest import ROOT
from tests.infra.stack_parts import FUNCTIONS, QUEUE_OF, allowed, as_list, of_type, refuses_plain_http, statements

from wikikeeper.adapters.aws.dynamodb_items import ALERTS
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

    assert template["Resources"][name]["Properties"]["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    assert may["sqs:ReceiveMessage"] == may["sqs:DeleteMessage"] == {f"{QUEUE_OF[name]}Queue"}
    assert may["logs:PutLogEvents"] == {f"{name}Logs"}


@pytest.mark.parametrize(
    ("name", "queues"),
    [
        ("ScheduleCycle", {"ScheduleQueue", "JudgeQueue", "RuleDeadLetters"}),
        ("JudgeResult", {"JudgeQueue", "NoteQueue"}),
        ("WriteNote", set()),
        ("ReapStale", {"ScheduleQueue", "JudgeQueue", "NoteQueue"}),
    ],
)
def test_a_function_sends_what_its_workflow_returns_and_what_it_cannot_parse(
    template: dict[str, Any], name: str, queues: set[str]
) -> None:
    assert allowed(template, f"{name}Role")["sqs:SendMessage"] == queues | {f"{QUEUE_OF[name]}DeadLetters"}


def test_notes_are_written_by_the_note_writer_alone_and_topics_by_nobody(template: dict[str, Any]) -> None:
    writers = {name: allowed(template, f"{name}Role").get("s3:PutObject", set()) for name in FUNCTIONS}

    assert writers == {
        "ScheduleCycle": set(),
        "JudgeResult": {"${Bucket.Arn}/pages/*"},
        "WriteNote": {"${Bucket.Arn}/wiki/inbox/awaiting/*"},
        "ReapStale": set(),
    }


def test_nothing_is_deleted_from_the_table_but_alerts_that_are_over(template: dict[str, Any]) -> None:
    deleting = [
        (name, statement.get("Condition"))
        for name in FUNCTIONS
        for statement in statements(template, f"{name}Role")
        if "dynamodb:DeleteItem" in as_list(statement["Action"])
    ]

    assert deleting == [("ScheduleCycle", {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [ALERTS]}})]


def test_nothing_may_delete_from_the_wiki_scan_the_table_or_change_the_stack(template: dict[str, Any]) -> None:
    actions = {action for name in FUNCTIONS for action in allowed(template, f"{name}Role")}

    assert {action.partition(":")[0] for action in actions} == {"logs", "sqs", "dynamodb", "s3"}
    assert not actions & {"s3:DeleteObject", "dynamodb:Scan", "dynamodb:DeleteTable", "dynamodb:UpdateTable"}


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


def test_a_cycle_skipped_twice_an_escalation_and_silence_are_alarms(template: dict[str, Any]) -> None:
    alarms = of_type(template, "AWS::CloudWatch::Alarm")
    skipped, escalated, quiet = (alarms[f"{name}Alarm"] for name in ("SkippedTwice", "Escalation", "Quiet"))

    assert (skipped["Statistic"], skipped["Threshold"], skipped["Period"]) == ("Sum", 2, 86_400)
    assert (escalated["Threshold"], escalated["ComparisonOperator"]) == (0, "GreaterThanThreshold")
    assert (quiet["Period"], quiet["EvaluationPeriods"]) == (3600, {"Ref": "QuietHours"})
    assert quiet["TreatMissingData"] == "breaching"
    assert quiet["ComparisonOperator"] == "LessThanThreshold"


def test_alarms_listen_to_events_that_the_workflows_report(template: dict[str, Any]) -> None:
    counted = {
        (count["LogGroupName"]["Ref"], count["MetricTransformations"][0]["MetricName"])
        for count in of_type(template, "AWS::Logs::MetricFilter").values()
    }
    own = [alarm for alarm in of_type(template, "AWS::CloudWatch::Alarm").values() if alarm["Namespace"] != "AWS/SQS"]

    assert {alarm["MetricName"] for alarm in own} == {event for _, event in counted}
    assert all(alarm["Namespace"] == {"Ref": "AWS::StackName"} and "Dimensions" not in alarm for alarm in own)
    sources = (ROOT / "shared" / "wikikeeper" / "workflows").glob("*.py")
    reported = {event for source in sources for event in re.findall(r'\.event\(\s*"(\w+)"', source.read_text())}
    assert {event for _, event in counted} <= reported
    # The judge's workflow stops a cycle, too, and that alerts.
    assert {group for group, event in counted if event == "alert"} == {"ScheduleCycleLogs", "JudgeResultLogs"}


def test_a_count_finds_the_lines_that_functions_write(template: dict[str, Any]) -> None:
    written = io.StringIO()
    JsonLog(written, function="schedule_cycle").event("cycle_skipped", topic="herons", cause="loading")

    for count in of_type(template, "AWS::Logs::MetricFilter").values():
        event = count["MetricTransformations"][0]["MetricName"]
        assert count["FilterPattern"] == f'{{ $.event = "{event}" }}'
    assert json.loads(written.getvalue())["event"] == "cycle_skipped"
