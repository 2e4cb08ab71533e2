"""What the stack promises: nothing open, nothing lost, nothing allowed that is not needed. On the transformed template."""

import json
import re
from typing import Any

import pytest
from tests.infra.conftest import ROOT
from tests.infra.stack_parts import FUNCTIONS, QUEUE_OF, WORKERS, of_type, refuses_plain_http, resolved

from wikikeeper.models import COMMAND, ReapStale
from wikikeeper.parts import CYCLE_LEASE
from wikikeeper.settings import Settings

LONGEST_RETENTION = 1_209_600


# -- functions


def test_there_is_a_function_for_each_folder_of_functions_under_its_name_with_dashes(template: dict[str, Any]) -> None:
    functions = of_type(template, "AWS::Lambda::Function")

    assert {name: function["FunctionName"]["Fn::Sub"] for name, function in functions.items()} == {
        name: f"${{AWS::StackName}}-{deployed}" for name, deployed in FUNCTIONS.items()
    }
    # Folders with a name in front of which a dot stands, or that Python made, hold no function.
    folders = [folder.name for folder in (ROOT / "functions").glob("[a-z]*") if folder.is_dir()]
    assert sorted(folders) in ([], sorted(deployed.replace("-", "_") for deployed in FUNCTIONS.values()))


@pytest.mark.parametrize(("name", "deployed"), FUNCTIONS.items())
def test_each_function_is_an_image_of_its_own_from_the_one_dockerfile(
    template: dict[str, Any], name: str, deployed: str
) -> None:
    assert template["Resources"][name]["Properties"]["PackageType"] == "Image"
    assert template["Resources"][name]["Metadata"] == {
        "Dockerfile": "infra/Dockerfile", "DockerContext": "..", "DockerTag": deployed,
        "DockerBuildArgs": {"FUNCTION": deployed},
    }  # fmt: skip
    assert (ROOT / "infra" / "requirements" / f"{deployed}.txt").exists()


def test_no_function_but_the_pages_can_be_called_from_the_web(template: dict[str, Any]) -> None:
    open_to_it = {
        resource["Properties"].get("FunctionName", resource["Properties"].get("TargetFunctionArn"))["Ref"]
        for resource in template["Resources"].values()
        if re.search("Url$|Permission$|ApiGateway", resource["Type"])
    }

    assert open_to_it == {"Web"}


def test_a_url_lets_everybody_to_the_pages_and_to_nothing_else_of_the_function(template: dict[str, Any]) -> None:
    url = of_type(template, "AWS::Lambda::Url")["WebUrl"]
    permissions = {
        (permission["Action"], permission["Principal"], permission.get("FunctionUrlAuthType"),
         permission.get("InvokedViaFunctionUrl"))
        for permission in of_type(template, "AWS::Lambda::Permission").values()
    }  # fmt: skip

    assert url["AuthType"] == "NONE"
    assert "Cors" not in url
    assert permissions == {
        ("lambda:InvokeFunctionUrl", "*", "NONE", None), ("lambda:InvokeFunction", "*", None, True)
    }  # fmt: skip


def test_without_a_token_there_are_no_pages_nor_anything_of_theirs(template: dict[str, Any]) -> None:
    theirs = {name for name in template["Resources"] if name.startswith("Web")}
    conditional = {name for name, part in template["Resources"].items() if part.get("Condition") == "Pages"}

    assert template["Conditions"]["Pages"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "WebToken"}, ""]}]}
    assert theirs == conditional >= {"Web", "WebUrl", "WebRole", "WebLogs", "WebErrorsAlarm"}
    assert template["Outputs"]["Pages"]["Condition"] == "Pages"
    assert template["Outputs"]["Pages"]["Value"] == {"Fn::GetAtt": ["WebUrl", "FunctionUrl"]}


def test_strangers_can_start_so_many_pages_at_once(template: dict[str, Any]) -> None:
    bound = template["Resources"]["Web"]["Properties"]["ReservedConcurrentExecutions"]

    assert bound == {"Fn::If": ["PagesAreBounded", {"Ref": "PagesAtOnce"}, {"Ref": "AWS::NoValue"}]}
    assert template["Conditions"]["PagesAreBounded"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "PagesAtOnce"}, 0]}]}
    assert template["Parameters"]["PagesAtOnce"]["Default"] == 10


def test_lambda_does_not_take_commands_that_wait_for_a_runaway_loop(template: dict[str, Any]) -> None:
    functions = of_type(template, "AWS::Lambda::Function")

    assert [function["RecursiveLoop"] for function in functions.values()] == ["Allow"] * len(FUNCTIONS)


def test_the_judge_may_run_for_the_lease_of_a_claim(template: dict[str, Any]) -> None:
    timeout = resolved(template, of_type(template, "AWS::Lambda::Function")["JudgeResult"]["Timeout"])

    assert timeout >= Settings().judge_lease.total_seconds()
    assert template["Parameters"]["JudgeTimeout"]["MaxValue"] == 900


def test_a_cycle_may_be_searched_for_as_long_as_its_lease(template: dict[str, Any]) -> None:
    timeout = of_type(template, "AWS::Lambda::Function")["ScheduleCycle"]["Timeout"]

    assert timeout >= CYCLE_LEASE.total_seconds()


def test_the_judge_has_room_for_an_extractor(template: dict[str, Any]) -> None:
    memory = of_type(template, "AWS::Lambda::Function")["JudgeResult"]["MemorySize"]

    assert memory >= 2 * Settings().extraction.max_memory_mb


@pytest.mark.parametrize(("name", "deployed"), FUNCTIONS.items())
def test_logs_go_to_a_group_that_forgets(template: dict[str, Any], name: str, deployed: str) -> None:
    group = template["Resources"][f"{name}Logs"]["Properties"]

    assert template["Resources"][name]["Properties"]["LoggingConfig"] == {"LogGroup": {"Ref": f"{name}Logs"}}
    assert group["LogGroupName"] == {"Fn::Sub": f"/aws/lambda/${{AWS::StackName}}-{deployed}"}
    assert resolved(template, group["RetentionInDays"]) == 30


# -- queues


@pytest.mark.parametrize("name", WORKERS)
def test_each_function_reads_its_own_queue_and_reports_failures_one_by_one(template: dict[str, Any], name: str) -> None:
    mapping = template["Resources"][f"{name}Commands"]["Properties"]

    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [f"{QUEUE_OF[name]}Queue", "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", WORKERS)
def test_a_queue_hides_messages_for_six_times_what_its_function_may_take(template: dict[str, Any], name: str) -> None:
    timeout = resolved(template, template["Resources"][name]["Properties"]["Timeout"])
    queue = template["Resources"][f"{QUEUE_OF[name]}Queue"]["Properties"]

    assert resolved(template, queue["VisibilityTimeout"]) >= 6 * timeout


@pytest.mark.parametrize("name", WORKERS)
def test_a_message_that_kills_three_workers_is_put_aside_for_two_weeks(template: dict[str, Any], name: str) -> None:
    queue = template["Resources"][f"{QUEUE_OF[name]}Queue"]["Properties"]
    aside = template["Resources"][f"{QUEUE_OF[name]}DeadLetters"]["Properties"]

    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [f"{QUEUE_OF[name]}DeadLetters", "Arn"]},
        "maxReceiveCount": 3,
    }
    assert aside["MessageRetentionPeriod"] == LONGEST_RETENTION > queue["MessageRetentionPeriod"]


@pytest.mark.parametrize("name", WORKERS)
def test_a_message_lives_long_enough_to_be_put_aside(template: dict[str, Any], name: str) -> None:
    """Else one that kills its workers would vanish unseen, before its last receipt."""
    queue = template["Resources"][f"{QUEUE_OF[name]}Queue"]["Properties"]
    hidden = queue["VisibilityTimeout"]
    longest = template["Parameters"][hidden["Ref"]]["MaxValue"] if isinstance(hidden, dict) else hidden

    assert queue["MessageRetentionPeriod"] > queue["RedrivePolicy"]["maxReceiveCount"] * longest


def test_queues_are_encrypted_and_closed_to_plain_http(template: dict[str, Any]) -> None:
    queues = of_type(template, "AWS::SQS::Queue")
    policy = of_type(template, "AWS::SQS::QueuePolicy")["QueuePolicy"]

    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    assert {queue["Ref"] for queue in policy["Queues"]} == queues.keys()
    assert all(queue["QueueName"]["Fn::Sub"].startswith("${AWS::StackName}-") for queue in queues.values())
    assert refuses_plain_http(policy, "sqs:*")


def test_as_many_judges_run_as_the_gate_lets_through_but_sqs_knows_no_fewer_than_two(template: dict[str, Any]) -> None:
    mapping = template["Resources"]["JudgeResultCommands"]["Properties"]

    assert mapping["BatchSize"] == 10
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": {"Fn::If": ["OneCallAtATime", 2, {"Ref": "GateLimit"}]}}
    assert template["Conditions"]["OneCallAtATime"] == {"Fn::Equals": [{"Ref": "GateLimit"}, 1]}


# -- rules


def test_the_tick_comes_each_minute_and_a_late_one_is_dropped(template: dict[str, Any]) -> None:
    tick = of_type(template, "AWS::Scheduler::Schedule")["Tick"]

    assert tick["ScheduleExpression"] == "rate(1 minute)"
    assert tick["Target"]["Arn"] == {"Fn::GetAtt": ["ScheduleCycle", "Arn"]}
    assert tick["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] == 60
    assert json.loads(tick["Target"]["Input"])["kind"] == "tick"


def test_the_sweep_is_a_command_in_the_queue_of_the_reaper(template: dict[str, Any]) -> None:
    sweep = of_type(template, "AWS::Scheduler::Schedule")["Sweep"]

    assert sweep["ScheduleExpression"] == "rate(5 minutes)"
    assert sweep["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] == 300
    assert sweep["Target"]["Arn"] == {"Fn::GetAtt": ["ReapQueue", "Arn"]}
    assert COMMAND.validate_json(sweep["Target"]["Input"]) == ReapStale()


def test_a_stack_can_rest(template: dict[str, Any]) -> None:
    assert [rule["State"] for rule in of_type(template, "AWS::Scheduler::Schedule").values()] == [{"Ref": "Rules"}] * 2
    assert template["Parameters"]["Rules"]["Default"] == "ENABLED"


def test_what_a_rule_could_not_deliver_and_what_a_tick_failed_on_is_put_aside(template: dict[str, Any]) -> None:
    aside = {"Fn::GetAtt": ["RuleDeadLetters", "Arn"]}
    invoked = of_type(template, "AWS::Lambda::EventInvokeConfig")["ScheduleCycleEventInvokeConfig"]

    for rule in of_type(template, "AWS::Scheduler::Schedule").values():
        assert rule["Target"]["DeadLetterConfig"] == {"Arn": aside}
        assert rule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] > 0
        assert rule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert invoked["DestinationConfig"]["OnFailure"]["Destination"] == aside
    # What the next rule does anyway is not tried beyond it.
    assert invoked["MaximumEventAgeInSeconds"] == 60


# -- state


def test_the_table_survives_the_stack_and_mistakes(template: dict[str, Any]) -> None:
    resource = template["Resources"]["Table"]
    table = resource["Properties"]

    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["DeletionProtectionEnabled"] is True
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_history_expires(template: dict[str, Any]) -> None:
    table = template["Resources"]["Table"]["Properties"]

    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}


def test_the_index_of_unfinished_work_holds_keys_only_so_that_a_change_of_state_does_not_write_it(
    template: dict[str, Any],
) -> None:
    indexes = template["Resources"]["Table"]["Properties"]["GlobalSecondaryIndexes"]
    projections = {index["IndexName"]: index["Projection"]["ProjectionType"] for index in indexes}

    assert projections == {"open": "KEYS_ONLY", "listed": "INCLUDE"}


def test_the_wiki_is_encrypted_versioned_private_and_survives_the_stack(template: dict[str, Any]) -> None:
    resource = template["Resources"]["Bucket"]
    bucket = resource["Properties"]
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    assert refuses_plain_http(of_type(template, "AWS::S3::BucketPolicy")["BucketPolicy"], "s3:*")


def test_only_texts_of_pages_are_ever_forgotten_never_the_wiki(template: dict[str, Any]) -> None:
    rules = template["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert [rule["Prefix"] for rule in rules if "ExpirationInDays" in rule] == ["pages/"]
