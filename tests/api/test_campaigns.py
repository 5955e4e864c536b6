"""Campaigns from a program: a whole life of one, setups of all kinds, and whatever is refused."""

import zipfile

import pytest

from prefmh_web.campaigns.models import Campaign
from prefmh_web.client import RequestRefused
from tests.support.campaigns import SETUPS, wait_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = "text\nA quiet sea.\nA loud street.\nAn empty road.\n"
SETUP = """\
version: 1
name: From a program
space: {kind: catalog, objects: texts}
file: {name: texts.csv}
kernel: {kind: independent}
judges: [{question: Which is better?, votes: 1}]
chains: 2
steps: 6
"""


def zipped(tmp_path, setup: str = SETUP, text: str = TEXTS) -> bytes:
    file = tmp_path / "setup.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("campaign.yaml", setup)
        archive.writestr("texts.csv", text)
    return file.read_bytes()


def test_a_request_that_is_sent_again_creates_no_second_campaign(site, tmp_path):
    setup = zipped(tmp_path)
    first, again = site.create(setup, once="morning"), site.create(setup, once="morning")
    assert (first.created, again.created) == (True, False)
    assert first.number == again.number
    assert site.create(setup).number != first.number


def test_what_is_wrong_with_a_setup_is_told_with_its_place(site):
    bad = SETUP.replace("votes: 1", "votess: 1")
    for send in (site.create, site.check):
        with pytest.raises(RequestRefused) as refused:
            send(bad.encode())
        assert refused.value.status == 422
        places = {(problem.line, problem.path) for problem in refused.value.problems}
        assert places == {(6, "judges.0.votes"), (6, "judges.0.votess")}
    assert not Campaign.objects.exists()


def test_a_program_that_may_only_read_changes_nothing(reader, campaign):
    with pytest.raises(RequestRefused) as refused:
        reader.pause(campaign.pk)
    assert refused.value.status == 403
    assert reader.campaign(campaign.pk).status == "running"


def test_campaigns_are_listed_a_page_at_a_time(site, researcher, campaign):
    for name in ("texts", "panel"):
        SETUPS[name](researcher)
    numbers = [found.number for found in site.campaigns()]
    assert numbers == sorted(Campaign.objects.values_list("pk", flat=True), reverse=True)
    page = site._json("GET", "/campaigns", params={"limit": 1})
    assert [each["number"] for each in page["campaigns"]] == numbers[:1]
    assert page["cursor"] == numbers[0]
    with pytest.raises(RequestRefused) as refused:
        site._json("GET", "/campaigns", params={"limit": 0})
    assert refused.value.problems[0].path.endswith("limit")


def test_a_whole_campaign(site, tmp_path):
    """Created, started, paused, resumed and extended by a program; people do the rest."""
    made = site.create(zipped(tmp_path))
    wait_until_idle()
    assert site.check(zipped(tmp_path)) == []
    assert (made.status, made.objects, made.chains, made.steps) == ("draft", "texts", 2, 6)
    assert site.start(made.number).status == "running"
    assert site.pause(made.number).status == "paused"
    assert site.resume(made.number).status == "running"
    assert site.extend(made.number, 4).steps == 10
    with pytest.raises(TimeoutError):
        site.wait_for(made.number, lambda found: found.status == "finished", seconds=0)
