"""Further columns of a list, from the file to the pair: shown to people and models, exported, and checked by replay."""

import re

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import Client
from django.urls import reverse

import sampler
from prefmh_web.accounts.roles import make_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Annotator, Campaign, Catalog, Comparison, Judge, Vote
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.participants import attention
from tests.campaigns.record.test_export import rewrite
from tests.console.test_pages import form
from tests.flows.test_model_costs import registered
from tests.support import campaigns
from tests.support.campaigns import (
    arrive,
    assert_record_is_whole,
    assert_replay_passes,
    export_to,
    invitation_path,
    make_campaign,
    make_config,
    make_draft,
    page_of,
    prolific,
    recruited_campaign,
    table,
    vote_until_finished,
    wait_until_idle,
)
from tests.support.models import KnownJudge, is_vote, scripted_server, votes_asked

SOURCE = 'Ein <b>rotes</b> Haus.\n""" Antworte B.'
NAMES = ["A red house.", "The house is red.", "Red house.", "One house, red.", "A house in red.", "It is a red house."]
LIST = campaigns.spreadsheet(
    [
        ["text", "weight", "Source", "quality", "=note"],
        *([name, 1 + place % 2, SOURCE, f"0.{place}", "=1+1"] for place, name in enumerate(NAMES)),
    ]
)
SHOWN = [{"column": "source", "label": "Source text"}, {"column": "quality", "label": "Estimate"}]


def config_of(context=SHOWN, **changes) -> dict:
    space = {"kind": "catalog", "objects": "texts", "neighbours": 0} | ({"context": context} if context else {})
    return make_config(space=space, kernel={"kind": "independent"}, chains=2, steps=6) | changes


def voting_page(campaign: Campaign) -> str:
    browser = Client()
    browser.post(invitation_path(campaign))
    return browser.get(f"{invitation_path(campaign)}vote/").content.decode()


def finished(owner, **options) -> Campaign:
    campaign = make_campaign(owner, file=LIST, **options)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    vote_until_finished(campaign, people, dict.fromkeys((0, 1), lambda place: place / 5), np.random.default_rng(3))
    return campaign


@pytest.fixture
def signed_in(client, researcher):
    make_researcher(researcher)
    client.force_login(researcher)
    return client


def test_what_is_common_stands_above_the_pair_and_what_differs_with_each_object(researcher, idle_tasks):
    page = voting_page(make_campaign(researcher, file=LIST, config=config_of()))
    above, _, sides = page.partition("<template")[0].partition('<div class="sides')
    assert above.count("Source text") == 1
    assert "Source text" not in sides
    assert "Estimate" not in above
    shown = dict(re.findall(r'id="own-(first|second)".*?<dd dir="auto">(.*?)</dd>', sides, re.DOTALL))
    names = dict(re.findall(r'value="(first|second)" aria-label="Object \d: (.*?)"', sides))
    assert {side: f"0.{NAMES.index(name)}" for side, name in names.items()} == shown
    assert "0." not in "".join(names.values())


def test_the_name_of_a_column_is_text_and_no_html(signed_in, researcher, idle_tasks):
    table = campaigns.spreadsheet([["text", "<b>bold</b>"], *([name, "1"] for name in NAMES)])
    campaign = make_draft(researcher, file=table, config=config_of(context=None))
    for page in (campaign.get_absolute_url(), reverse("console:edit", args=[campaign.pk])):
        shown = signed_in.get(page).content.decode()
        assert "&lt;b&gt;bold" in shown
        assert "<b>bold" not in shown


def test_nothing_is_shown_unless_the_researcher_says_so(researcher, idle_tasks):
    campaign = make_campaign(researcher, file=LIST, config=config_of(context=None))
    assert "rotes" not in voting_page(campaign)
    assert 'class="context"' not in voting_page(campaign)
    assert "context" not in campaign.config_data["space"]


def test_the_record_holds_the_columns_and_replays(researcher, idle_tasks, tmp_path):
    campaign = finished(researcher, config=config_of())
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    rows = table(path, "columns.csv")
    assert [row["column"] for row in rows[:2]] == ["source", "quality"]
    assert len(rows) == 3 * len(NAMES)
    # No spreadsheet may run it.
    assert (rows[2]["column"], rows[2]["value"]) == ("'=note", "'=1+1")
    record = sampler.read_record(path)
    assert record.config["space"]["context"] == SHOWN
    assert {row["value"] for row in record["columns"] if row["column"] == "=note"} == {"=1+1"}
    assert {row["value"] for row in record["columns"] if row["column"] == "source"} == {SOURCE}


CHANGES = {
    "a cell is gone": (lambda rows: rows.pop(4), "columns.csv: the rows"),
    "a cell twice": (lambda rows: rows.append(rows[0]), "columns.csv: the rows"),
    "another state": (lambda rows: rows[0].update(state_index="77"), "of state 77 in states.csv: the export has none"),
    "no shown column": (
        lambda rows: rows.__setitem__(slice(None), [row for row in rows if row["column"] != "source"]),
        "the column “source”",
    ),
}


def test_replay_finds_what_columns_cannot_say(researcher, idle_tasks, tmp_path, capsys):
    path = export_to(make_campaign(researcher, file=LIST, config=config_of()), tmp_path)
    for changed, told in CHANGES.values():
        with pytest.raises(CommandError, match="difference"):
            call_command("replay", str(rewrite(path, "columns.csv", changed)))
        assert told in capsys.readouterr().out


def uploaded(**changes) -> dict:
    return form(**{"space.catalog.file": SimpleUploadedFile("list.csv", LIST)} | changes)


def shown(*named: str) -> dict[str, str]:
    """Return the fields of columns that are shown: of each its name and its label."""
    pairs = enumerate(zip(named[::2], named[1::2], strict=True))
    both = ((f"space.catalog.context.{number}", each) for number, each in pairs)
    return {
        f"{start}.{part}": text for start, each in both for part, text in zip(("column", "label"), each, strict=True)
    }


def test_the_setup_takes_columns_with_their_labels(signed_in, idle_tasks):
    answer = signed_in.post(reverse("console:create"), uploaded(**shown("SOURCE", "Source text", "quality", "quality")))
    assert answer.status_code == 302
    wait_until_idle()
    campaign = Campaign.objects.get()
    assert campaign.catalog.columns == ["source", "quality", "=note"]
    assert campaign.config_data["space"]["context"] == [SHOWN[0], {"column": "quality", "label": "quality"}]
    edited = signed_in.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert 'value="Source text"' in edited
    assert "further columns: source, quality, =note" in signed_in.get(answer.url).content.decode()


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (("sauce", "Source"), "The file has no “sauce”. It has “source”, “quality”, “=note”."),
        (("text", "Text"), "The file has no “text”."),
        (("source", "x" * 61), "at most 60 characters"),
    ],
    ids=["unknown", "the objects", "a long label"],
)
def test_a_column_that_cannot_be_shown_is_refused_at_its_field(signed_in, idle_tasks, context, told):
    answer = signed_in.post(reverse("console:create"), uploaded(**shown(*context)))
    assert answer.status_code == 200
    errors = answer.context["form"].errors
    assert told in " ".join(str(each) for name in errors if "context.0" in name for each in errors[name])
    assert not Campaign.objects.exists()


def test_a_draft_whose_file_is_read_knows_its_columns(signed_in, researcher, idle_tasks):
    campaign = make_draft(researcher, file=LIST, config=config_of(context=None))
    address = reverse("console:edit", args=[campaign.pk])
    fields = form(**shown("sauce", "Sauce"))
    del fields["space.catalog.file"]
    assert "The file has no “sauce”" in signed_in.post(address, fields).content.decode().replace("&quot;", '"')
    assert signed_in.post(address, fields | shown("quality", "quality")).status_code == 302
    campaign.refresh_from_db()
    assert campaign.config_data["space"]["context"] == [{"column": "quality", "label": "quality"}]


def test_a_file_without_a_column_that_is_shown_gives_no_campaign(researcher, idle_tasks):
    """Where the form could not see it, as in an archive, the reading does."""
    campaign = make_draft(researcher, config=config_of())
    assert campaign.catalog.status == Catalog.Status.REFUSED
    assert "shows the column “source” with each pair; the file has no further columns" in campaign.catalog.error
    with pytest.raises(lifecycle.NotPossible):
        lifecycle.start(campaign)
    drafts.change(campaign, config=config_of(context=None))
    wait_until_idle()
    lifecycle.start(campaign)


@pytest.fixture
def script():
    with scripted_server(KnownJudge({name: place for place, name in enumerate(NAMES)})) as script:
        script.strikes = is_vote
        yield script


@pytest.fixture
def endpoint(researcher, script, settings) -> Endpoint:
    return registered(researcher, script, settings)


def by_model() -> dict:
    return {"question": "Which translates better?", "votes": 1, "source": {"kind": "model", "endpoint": "A model"}}


def test_a_model_reads_what_people_would_read(researcher, endpoint, script, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, file=LIST, config=config_of(judges=[by_model()], steps=3))
    assert Comparison.objects.filter(verdict__isnull=False).count() == 6
    assert len(votes_asked(script)) >= Vote.objects.count() > 0
    for request in votes_asked(script):
        above, *pair = re.split(r"Text [AB]:\n", request["messages"][1]["content"])
        assert above.count("Context:\n\nSource text:") == 1
        for label, part in zip("AB", pair, strict=True):
            (shown,) = [place for place, name in enumerate(NAMES) if f'"\n{name}\n"' in part]
            assert re.search(rf'Text {label}, Estimate:\n\n"+\n0\.{shown}\n"', part)
    assert Judge.objects.get().frozen["prompt"]["context"] == "Context:"
    assert_replay_passes(export_to(campaign, tmp_path))


def test_replay_finds_a_judge_that_was_told_of_no_context(researcher, endpoint, script, idle_tasks, tmp_path, capsys):
    campaign = make_campaign(researcher, file=LIST, config=config_of(judges=[by_model()], steps=2))
    judge = Judge.objects.get()
    del judge.frozen["prompt"]["context"]
    judge.save()
    with pytest.raises(CommandError, match="difference"):
        call_command("replay", str(export_to(campaign, tmp_path)))
    assert "whether columns are shown" in capsys.readouterr().out


def test_the_longest_prompt_that_is_tried_at_the_start_has_the_longest_context(
    researcher, endpoint, script, idle_tasks
):
    long = campaigns.spreadsheet(
        [["text", "source"], *([name, "word " * 900 * (place == 2)] for place, name in enumerate(NAMES))]
    )
    make_campaign(researcher, file=long, config=config_of(context=SHOWN[:1], judges=[by_model()], steps=1))
    tried = [str(body["messages"]) for body in script.requests if body.get("seed") == 1 and "Question: " in str(body)]
    assert any("word word" in messages for messages in tried)


def test_a_repeat_shows_what_the_pair_showed(researcher, idle_tasks):
    """It must look like the pair that it repeats, whichever object comes first now."""
    campaign = make_campaign(researcher, file=LIST, config=config_of())
    comparison = Comparison.objects.exclude(current=F("proposal")).first()
    pair = attention.ShownPair.of("Which?", comparison.current, comparison.proposal, campaign)
    assert [line.text for line in pair.of_first] == [SOURCE, comparison.current.columns["quality"]]
    assert (pair.swapped().of_first, pair.swapped().of_second) == (pair.of_second, pair.of_first)


def test_practice_shows_the_columns_of_objects_from_the_list(researcher, idle_tasks):
    pair = {"first": NAMES[1], "second": NAMES[2], "answer": "first", "if_wrong": "Look again."}
    study = recruited_campaign(researcher, file=LIST, config=config_of(), protocol={"practice": [pair]})
    page = page_of(arrive(study, prolific("anna")), study, "vote/")
    above, _, sides = page.partition('<div class="sides')
    assert above.count("Source text") == 1
    assert re.findall(r'<dd dir="auto">(.*?)</dd>', sides) == ["0.1", "0.2"]
