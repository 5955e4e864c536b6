"""campaign.yaml of the record: the setup without codes, addresses and, until the end, the answers of checks."""

import io
import json
import zipfile

import pytest
import yaml

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.setup.export import file_of, setup_of
from prefmh_web.setup.left_out import MARK
from prefmh_web.setup.problems import SetupError
from prefmh_web.setup.reading import setup_in
from tests.setup.documents import LEAST
from tests.setup.test_command import run
from tests.support.campaigns import CODES, SETUPS, WAY_BACK, recruited_campaign

CHECKS = {
    "comprehension": [{"text": "Which one?", "options": ["the dark one", "the long one"], "right": "the dark one"}]
}
_PLACES = ("people.way_back", "people.codes.completed", "people.codes.nothing-left")
_ANSWER = "people.protocol.comprehension.0.right"


def copy_in_record(campaign) -> str:
    content = io.BytesIO(b"".join(export.archive(campaign)))
    with zipfile.ZipFile(content) as archive:
        return archive.read("campaign.yaml").decode()


@pytest.fixture
def study(researcher) -> Campaign:
    return recruited_campaign(researcher, protocol=CHECKS)


def finish(campaign: Campaign) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.FINISHED)
    campaign.refresh_from_db()


def test_a_running_campaigns_record_tells_no_code_no_address_and_no_answer(study):
    text = copy_in_record(study)
    for secret in (*CODES.values(), WAY_BACK, "right: the dark one"):
        assert secret not in text
    people = yaml.safe_load(text)["people"]
    assert people["way_back"] == MARK
    assert people["codes"] == dict.fromkeys(CODES, MARK)
    assert people["protocol"]["comprehension"][0] == CHECKS["comprehension"][0] | {"right": MARK}


def test_protocol_json_keeps_the_answers_as_long(study):
    def right() -> str:
        with zipfile.ZipFile(io.BytesIO(b"".join(export.archive(study)))) as archive:
            return json.loads(archive.read("protocol.json"))["protocol"]["comprehension"][0]["right"]

    assert right() == MARK
    finish(study)
    assert right() == "the dark one"


def test_a_finished_campaigns_record_has_the_answers_and_still_no_code(study):
    finish(study)
    text = copy_in_record(study)
    assert yaml.safe_load(text)["people"]["protocol"]["comprehension"] == CHECKS["comprehension"]
    assert text.count(MARK) == 3


def test_all_else_of_the_setup_is_there(study):
    finish(study)
    filled = copy_in_record(study).replace(f"way_back: {MARK}", f"way_back: {WAY_BACK}")
    for outcome, code in CODES.items():
        filled = filled.replace(f"{outcome}: {MARK}", f"{outcome}: {code}")
    assert setup_in(filled) == setup_of(study)
    assert len(yaml.safe_load(filled)["file"]["sha256"]) == 64


def test_check_accepts_the_marks_and_tells_of_them_where_creation_asks_for_the_values(study, tmp_path):
    path, text = tmp_path / "campaign.yaml", copy_in_record(study)
    (tmp_path / study.catalog.filename).write_bytes(b"".join(file_of(study.catalog)))
    path.write_text(text)
    warnings = json.loads(run("check", path, "--owner", "ada", "--json"))["warnings"]
    assert [each.split(": ")[1] for each in warnings] == [*_PLACES, _ANSWER]
    line = text.splitlines().index(f"  way_back: {MARK}") + 1
    assert warnings[0].startswith(f"line {line}, column 3: people.way_back: “{MARK}” stands for what a record does not")
    told = run("create", path, "--owner", "ada", "--json", code=1)
    problems = json.loads(told.splitlines()[0])["problems"]
    assert [each["path"] for each in problems] == [*_PLACES, _ANSWER]
    assert all("; enter the value, or remove the key" in each["message"] for each in problems[:3])
    assert problems[3]["message"].endswith("; enter one of the options")
    assert Campaign.objects.count() == 1


def test_beside_marks_whatever_else_is_wrong_is_told(study):
    wrong = copy_in_record(study).replace("chains: ", "chians: ")
    with pytest.raises(SetupError) as refused:
        setup_in(wrong, lambda _: None)
    assert {each.path for each in refused.value.problems} == {"chians", "chains"}


@pytest.mark.parametrize(
    "marked",
    [
        f"people: {MARK}",
        f"people:\n  codes: {MARK}",
        f"people:\n  protocol: {MARK}",
        f"people:\n  protocol:\n    comprehension: {MARK}",
        f"people:\n  protocol:\n    comprehension: [{MARK}]",
        f"people:\n  protocol:\n    comprehension: [{{right: {MARK}, options: 1}}]",
        f"people:\n  codes: {{wrong: {MARK}}}",
    ],
)
def test_a_mark_elsewhere_is_no_value(marked):
    with pytest.raises(SetupError):
        setup_in(LEAST + marked + "\n", lambda _: None)


def test_a_record_whose_list_is_gone_names_it_without_its_hash(researcher):
    campaign = SETUPS["started"](researcher)
    campaign.catalog.file.storage.delete(campaign.catalog.file.name)
    assert yaml.safe_load(copy_in_record(campaign))["file"] == {"name": "texts.csv"}
