"""`manage.py campaign`: what it prints, what it does, and with which status it exits."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import json_schema
from prefmh_web.config_files import config_in
from tests.drafts.configs import LEAST, draft, written_file
from tests.support.campaigns import TEXTS
from tests.support.installations import ROOT
from tests.support.process import wait_until_idle

LISTED = LEAST.replace(
    "kind: texts\n  temperature: 1", "kind: catalog\n  objects: texts\n  neighbours: 2\nfile:\n  name: mine.csv"
).replace("kind: suffix", "kind: independent")


def run(*arguments: object, code: int = 0) -> str:
    """Return what the command prints, and demand its exit status."""
    out = io.StringIO()
    try:
        call_command("campaign", *map(str, arguments), stdout=out, stderr=io.StringIO())
    except CommandError as error:
        if error.returncode != code:
            raise
        return out.getvalue() + str(error)
    assert code == 0
    wait_until_idle()
    return out.getvalue()


@pytest.fixture
def file(tmp_path, researcher) -> Path:
    (tmp_path / "mine.csv").write_text(TEXTS)
    found = tmp_path / "campaign.yaml"
    found.write_text(LISTED)
    return found


def test_a_campaign_goes_from_its_file_through_its_life_and_back(file, tmp_path):
    assert "nothing is wrong" in run("check", file, "--owner", "ada")
    number = int(run("create", file, "--owner", "ada", "--once", "pilot"))
    assert int(run("create", file, "--owner", "ada", "--once", "pilot")) == number
    assert json.loads(run("start", number, "--json")) == {"ok": True, "campaign": number, "status": "running"}
    assert run("pause", number) == f"Campaign {number} is paused.\n"
    assert run("resume", number) == f"Campaign {number} is running.\n"
    assert json.loads(run("extend", number, "--steps", 5, "--json"))["steps"] == 15
    assert "steps: 15\n" in run("export", number)
    run("export", number, "--out", tmp_path / "out.zip")
    again = int(run("create", tmp_path / "out.zip", "--owner", "ada"))
    assert written_file(Campaign.objects.get(pk=again)) == (tmp_path / "out.zip").read_bytes()


def test_the_status_says_whether_the_setup_or_the_usage_is_wrong(file, tmp_path):
    file.write_text(LISTED.replace("chains: 2", "chains: 0"))
    told = run("check", file, "--owner", "ada", "--json", code=1)
    (problem,) = json.loads(told.splitlines()[0])["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == ("chains", 14, 1)
    assert f"{file}: line 14, column 1: chains: " in told
    assert "no campaign 999" in run("start", 999999, code=2)
    assert "no account 'eve'" in run("check", file, "--owner", "eve", code=2)
    assert "No such file" in run("check", tmp_path / "other.yaml", "--owner", "ada", code=2)
    assert not Campaign.objects.exists()


def test_a_disk_without_room_is_told():
    with (
        Path("/dev/full").open("w", buffering=1) as full,
        pytest.raises(CommandError, match="a file or the output: No space"),
    ):
        call_command("campaign", "schema", stdout=full)


def test_a_file_without_objects_is_told(file, tmp_path):
    (tmp_path / "mine.csv").write_text("nothing")
    assert "its file gave no objects" in run("create", file, "--owner", "ada", code=1)


def test_what_a_start_would_refuse_and_a_seed_that_is_used_are_warned_about(researcher, tmp_path):
    written = draft(researcher, "written")
    content = written_file(written) + b"seed: 20261121\n"
    Campaign.objects.filter(pk=written.pk).update(seed=20261121, config_data=written.config_data | {"seed": 20261121})
    path = tmp_path / "written.yaml"
    path.write_bytes(content)
    warnings = json.loads(run("create", path, "--owner", "ada", "--json"))["warnings"]
    assert [
        name for name in ("A judge", "Another", "A writer", "has the same seed") if not any(name in w for w in warnings)
    ] == []


def test_the_example_of_the_docs_is_a_setup():
    text = (ROOT / "docs/api.md").read_text()
    example = text.split("```yaml\n")[1].split("```")[0]
    assert config_in(example).study.recruiter == "prolific"


def test_every_setting_is_printed_with_its_bounds_and_why_it_is_fixed():
    page = run("settings")
    assert "| `seconds` | Time to answer, in seconds." in page
    assert "at least 10; at most 3,600 | `120` | fixed: it is part of what people judge by" in page
    keys = {key for part in [json_schema(), *json_schema()["$defs"].values()] for key in part.get("properties", ())}
    assert {key for key in keys if f"| `{key}` |" not in page} == set()
    assert json.loads(run("schema")) == json_schema()
