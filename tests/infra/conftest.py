"""The template as CloudFormation sees it, after SAM's transformation, which needs no account."""

from pathlib import Path
from typing import Any

import pytest
from boto3 import Session
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
TEMPLATE = ROOT / "infra" / "template.yaml"


def transformed() -> dict[str, Any]:
    """Raises samtranslator's InvalidDocumentException for what SAM does not take."""
    template: dict[str, Any] = yaml_parse(TEMPLATE.read_text("utf-8"))
    # `sam build` puts the address of the image there.
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["ImageUri"] = "123456789012.dkr.ecr.us-east-1.amazonaws.com/wikikeeper:test"
    # No managed policies are handed over: SAM would attach some to roles of its own, and every role here is ours.
    translator = Translator({}, Parser(), boto_session=Session(region_name=REGION))
    result: dict[str, Any] = translator.translate(sam_template=template, parameter_values={})
    return result


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    return transformed()
