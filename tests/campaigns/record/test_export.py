"""The record as files: whole, of one moment, harmless in a spreadsheet, and enough to recompute every verdict.

scores.csv and scorers.json: only where there are scorers, checked by replay, and followed by the report.

What a researcher does in a started campaign is in events.csv, and nothing of it names anybody.

preferences.jsonl says what votes.csv and states.csv say together, and nothing of who voted.

Pictures that an image model has made are in the archive, under their objects' numbers.

The cells of an uploaded list stand with its objects.
"""

import csv
import dataclasses
import hashlib
import io
import json
import re
import zipfile
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import uuid4

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.models import Comparison, Lease, Membership, Score, Side, Vote, Voter
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.rows import Snapshot, Timestamp
from prefmh_web.objects import media
from sampler import tables
from tests.support.campaigns import (
    make_campaign,
    make_config,
    set_caps,
    set_study,
    vote_until_finished,
    voted_campaign,
    voted_to_the_end,
)
from tests.support.process import sweep_everything
from tests.support.records import (
    assert_replay_passes,
    checked_export,
    everything_in,
    export_to,
    happened,
    refused_by_replay,
    table,
)
from tests.support.sampling import files_of, with_rows, write


@pytest.fixture
def voted(researcher, idle_tasks):
    """A finished campaign of 2 chains of 12 steps; one starts at a later object than it goes to."""
    return voted_campaign(researcher, config=make_config(chains=2, steps=12, seed=3))


def rewrite(path, name, change):
    """Return a copy of an export with one file's rows changed."""
    return write(with_rows(files_of(path), name, change), path.with_name(f"changed-{name}.zip"))


def test_an_export_replays_and_says_what_the_database_says(voted, tmp_path):
    path = export_to(voted, tmp_path)
    votes = Vote.objects.filter(judge__campaign=voted)
    assert f"24 verdicts recomputed from {votes.count()} votes" in assert_replay_passes(path)
    steps = table(path, "steps.csv")
    assert [row["verdict"] for row in steps] == list(
        Comparison.objects.order_by("chain__index", "step").values_list("verdict", flat=True)
    )
    assert [float(row["uniform"]) for row in steps] == list(
        Comparison.objects.order_by("chain__index", "step").values_list("uniform", flat=True)
    )
    samples = table(path, "samples.csv")
    assert [(row["chain_index"], row["step"]) for row in samples] == [(c, str(n)) for c in "01" for n in range(13)]
    assert {row["chain_index"]: int(row["state_index"]) for row in samples} == {
        str(chain.index): chain.head.index for chain in voted.chains.all()
    }
    assert len(table(path, "states.csv")) == 12
    described = {(row["file"], row["column"]) for row in table(path, "codebook.csv")}
    for name, content in files_of(path).items():
        header = content.decode("utf-8-sig").partition("\r\n")[0].split(",") if name.endswith(".csv") else ()
        assert {(name, column) for column in header} <= described
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("campaign.json")) == voted.public_config


def test_each_vote_names_the_states_that_stood_left_and_right_and_the_chosen_one(voted, tmp_path):
    found = Vote.objects.filter(judge__campaign=voted).select_related("comparison__current", "comparison__proposal")
    expected = {
        str(vote.key): [
            str(vote.comparison.state_on(side, vote.proposal_side).index)
            for side in ("first", "second", vote.chosen_side)
        ]
        for vote in found
    }
    rows = table(export_to(voted, tmp_path), "votes.csv")
    assert {row["lease"]: [row["first_state"], row["second_state"], row["chosen_state"]] for row in rows} == expected
    assert {row["hidden_ms"] for row in rows} == {""}


def test_an_open_step_is_exported_as_open_with_its_votes(campaign, tmp_path):
    person = Voter.objects.create(campaign=campaign)
    lease = leases.take(person)
    leases.answer(lease.key, person, Side.FIRST, 800)
    path = checked_export(campaign, tmp_path)
    assert {row["uniform"] for row in table(path, "steps.csv") if not row["verdict"]} == {""}
    [vote] = table(path, "votes.csv")
    assert (vote["number"], vote["elapsed_ms"], vote["chosen_side"]) == ("1", "800", "first")


def test_votes_cast_while_an_export_streams_do_not_tear_it(voted, researcher, tmp_path, idle_tasks):
    campaign = make_campaign(researcher, name="Streaming")
    people = [Voter.objects.create(campaign=campaign) for _ in range(3)]
    chunks = export.archive(campaign)
    parts = [next(chunks)]
    for person in people * 4:
        if lease := leases.take(person):
            leases.answer(lease.key, person, Side.FIRST, None)
        idle_tasks()
    path = tmp_path / "torn.zip"
    path.write_bytes(b"".join([*parts, *chunks]))
    assert Vote.objects.filter(judge__campaign=campaign).exists()
    assert_replay_passes(path)


def test_a_snapshot_gives_the_same_files_however_much_is_voted_afterwards(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(steps=4))
    people = [Voter.objects.create(campaign=campaign) for _ in range(4)]
    # One vote on each open pair, two of them by two people: tallies that are not whole.
    for person in people:
        lease = leases.take(person)
        leases.answer(lease.key, person, Side.FIRST, 700)
    idle_tasks()
    snapshot = Snapshot.now(campaign)
    # Of events, those are in it that have happened by the moment of writing and fit the other tables.
    names = [name for name in export.TABLES if name != "events.csv"]
    before = {name: "".join(export.as_csv(export.TABLES[name](snapshot))) for name in names}
    assert {row["verdict"] for row in csv.DictReader(before["steps.csv"].splitlines())} >= {""}
    vote_until_finished(campaign, people, dict.fromkeys((0, 1), float), np.random.default_rng(4))
    late = Vote.objects.filter(judge__campaign=campaign).first()
    late.pk, late.key, late.number = None, uuid4(), None
    late.voter = Voter.objects.create(campaign=campaign)
    late.save(force_insert=True)
    assert {name: "".join(export.as_csv(export.TABLES[name](snapshot))) for name in names} == before
    assert "".join(export.as_csv(export.TABLES["votes.csv"](Snapshot.now(campaign)))) != before["votes.csv"]


def test_results_are_computed_of_as_many_rows_as_fit_into_memory_and_of_no_more(voted, monkeypatch):
    snapshot = Snapshot.now(voted)
    held = voted.chains.count() * voted.config.steps + Vote.objects.filter(judge__campaign=voted).count()
    monkeypatch.setattr(export, "MAX_ROWS", held)
    assert "".join(export.results(snapshot)).count("\n") > 1
    monkeypatch.setattr(export, "MAX_ROWS", held - 1)
    with pytest.raises(lifecycle.NotPossible, match=f"has {held} samples and votes"):
        list(export.results(snapshot))


def test_a_vote_that_came_too_late_has_no_number_and_its_voter_one_of_the_campaign(voted, tmp_path):
    late = Vote.objects.filter(comparison__step=2, comparison__chain__index=1).earliest("number")
    voter = Voter.objects.create(campaign=voted)
    late.pk, late.key, late.number, late.voter = None, uuid4(), None, voter
    late.save(force_insert=True)
    votes = table(export_to(voted, tmp_path), "votes.csv")
    of_step = [row for row in votes if (row["chain_index"], row["step"]) == ("1", "2")]
    assert [row["voter"] for row in of_step if not row["number"]] == [str(voted.voters.count())]
    assert of_step[-1]["number"] == ""


def test_a_longer_record_needs_no_more_statements(voted, researcher, idle_tasks, django_assert_num_queries):
    short = voted_campaign(researcher, name="Short", config=make_config(chains=2, steps=1))
    # What a process remembers of a campaign it asks once.
    list(export.archive(voted))
    with CaptureQueriesContext(connection) as of_short:
        list(export.archive(short))
    with django_assert_num_queries(len(of_short)):
        list(export.archive(voted))


@pytest.mark.parametrize("microsecond", [0, 1, 999, 1000, 417_000, 417_500, 999_999])
def test_the_database_writes_a_moment_as_the_record_does(campaign, microsecond):
    moment = datetime(2026, 12, 31, 23, 59, 59, microsecond, tzinfo=UTC)
    # Of any zone: the record is in UTC.
    elsewhere = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    Comparison.objects.update(opened_at=elsewhere)
    assert set(Comparison.objects.values_list(Timestamp("opened_at"), flat=True)) == {sampler.moment(moment)}
    assert set(Comparison.objects.values_list(Timestamp("decided_at"), flat=True)) == {None}


@pytest.fixture
def scored(researcher, idle_tasks, declare, tmp_path):
    """The export of a finished campaign with a measured scorer and a program."""
    declare("print('nan' if 'red dog' in told['content'] else len(told['content']) / 3, flush=True)")
    campaign = make_campaign(researcher, config=make_config(chains=2, steps=12), scorer_names="words length")
    voted_to_the_end(campaign)
    sweep_everything()
    return export_to(campaign, tmp_path)


def test_a_record_has_every_score_to_its_last_digit_and_replays_without_a_scorer(scored, settings):
    settings.SCORERS = {}
    assert "24 verdicts" in assert_replay_passes(scored)
    contents = {row["state_index"]: row["content"] for row in table(scored, "states.csv")}
    rows = table(scored, "scores.csv")
    assert list(rows[0]) == ["state_index", "scorer", "score"]
    assert len(rows) == Score.objects.count()
    for row in rows:
        content = contents[row["state_index"]]
        if row["scorer"] == "words":
            assert float(row["score"]) == len(content.split())
        else:
            assert row["score"] == ("" if "red dog" in content else repr(len(content) / 3))
    with zipfile.ZipFile(scored) as archive:
        words, length = json.loads(archive.read("scorers.json"))
    assert words == {"name": "words", "kind": "measured"}
    assert (length["name"], length["kind"], len(length["command_sha256"])) == ("length", "command", 64)


def words_of(rows) -> dict[str, str]:
    return next(row for row in rows if row["scorer"] == "words")


CHANGES = [
    (lambda rows: rows[0].update(state_index="999"), "states.csv has no such state"),
    (lambda rows: rows[-1].update(scorer="nobody"), "scorers.json has no such scorer"),
    (lambda rows: rows.append(dict(rows[-1])), "expected one score"),
    (lambda rows: words_of(rows).update(score="5.01"), "the export has 5.01, expected 5"),
    (lambda rows: words_of(rows).update(score=""), "the export has none, expected 5"),
    (
        lambda rows: next(row for row in rows if row["scorer"] == "length" and row["score"]).update(score="inf"),
        "expected a finite number",
    ),
]


def test_replay_tells_where_scores_are_wrong(scored):
    for change, told in CHANGES:
        assert told in refused_by_replay(rewrite(scored, "scores.csv", change), "1 difference")


def test_a_measure_that_is_said_to_be_a_programs_is_found(scored):
    files = files_of(scored)
    told = files["scorers.json"].replace(b'"measured"', b'"command"')
    refused = refused_by_replay(write(files | {"scorers.json": told}, scored.with_name("changed.zip")), "1 difference")
    assert "scorers.json: the kind of words: the export has “command”, expected “measured”" in refused


def test_a_measure_within_the_tolerance_is_the_same(scored):
    assert_replay_passes(rewrite(scored, "scores.csv", lambda rows: words_of(rows).update(score="5.000001")))


def test_each_change_is_a_row_in_the_order_of_time(campaign, researcher, tmp_path):
    get_user_model().objects.create_user("grace")
    lifecycle.pause(campaign)
    set_caps(campaign, researcher, cost_cap=Decimal(5), request_cap=None)
    lifecycle.resume(campaign)
    changes.extend(campaign, 3, researcher)
    link = access.invite(campaign, is_single_use=True)
    access.revoke(link)
    member = access.add_member(campaign, "grace", Membership.Role.VIEWER)
    access.remove_member(member)
    before = campaign.config_data["steps"] - 3
    path = export_to(campaign, tmp_path)
    rows = table(path, "events.csv")
    assert happened(path) == [
        ("started", {"seed_hash": campaign.seed_hash}),
        ("paused", {}),
        ("config-changed", {"path": "caps.cost", "old": None, "new": 5.0, "by": "owner"}),
        ("resumed", {}),
        ("extended", {"steps_before": before, "steps_after": before + 3, "verdict": "cannot be judged", "by": "owner"}),
        ("link-made", {"link": 2, "people": "one"}),
        ("link-closed", {"link": 2}),
        ("member-set", {"role": "viewer"}),
        ("member-removed", {"role": "viewer"}),
    ]
    assert [row["number"] for row in rows] == list("123456789")
    assert {row["voter"] for row in rows} == {""}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    held = everything_in(path)
    # Whole words: hashes have all kinds of letters in a row.
    assert not [word for word in ("grace", researcher.username, link.token) if re.search(rf"\b{word}\b", held)]
    assert_replay_passes(path)


def test_codes_are_changed_by_name_only(campaign, tmp_path):
    for codes in ({"completed": "SECRET99"}, {"completed": "SECRET99"}):
        set_study(campaign, {"codes": codes}, ())
    path = export_to(campaign, tmp_path)
    said = {"path": "study.codes", "old": None, "new": None}
    assert happened(path, "config-changed") == [("config-changed", said)]
    assert "SECRET99" not in everything_in(path)


LIST = "text,source,note\n" + "".join(f"Text {index},The house,Note {index % 2}\n" for index in range(6))
SHOWN = [{"column": "source", "label": "Source"}, {"column": "note", "label": "Note"}]


def lines_of(path) -> list[dict]:
    with zipfile.ZipFile(path) as archive:
        return [json.loads(line) for line in archive.read("preferences.jsonl").decode().splitlines()]


def test_each_vote_is_a_line_with_the_two_texts(researcher, idle_tasks, tmp_path):
    # Programs that read line by line end a line there, though JSON may hold them as they are.
    file = LIST.replace("Text ", "Text\u2028\u2029\x85")
    campaign = voted_campaign(researcher, file=file, config=make_config(chains=2, steps=4))
    path = export_to(campaign, tmp_path)
    content = {row["state_index"]: row["content"] for row in table(path, "states.csv")}
    lines, votes = lines_of(path), table(path, "votes.csv")
    assert len(lines) == len(votes) > 0
    for line, vote in zip(lines, votes, strict=True):
        shown = {vote["first_state"], vote["second_state"]}
        assert line["prompt"] == vote["question"]
        assert line["chosen"] == content[vote["chosen_state"]]
        assert line["rejected"] == content[(shown - {vote["chosen_state"]}).pop()]
        keys = ("chain_index", "step", "number", "judge_index", "lease")
        assert [str(line[key]) for key in keys] == [vote[key] for key in keys]
        assert line.keys() == {*map(str, tables.PREFERENCES.header)}
    leases = Lease.objects.filter(voter__campaign=campaign, ending=Lease.Ending.VOTED)
    assert {line["lease"] for line in lines} == {str(lease.key) for lease in leases}


def test_the_prompt_holds_what_both_objects_were_shown_with(researcher, idle_tasks, tmp_path):
    config = make_config(chains=2, steps=4)
    config["space"]["context"] = SHOWN
    campaign = voted_campaign(researcher, file=LIST, config=config)
    lines = lines_of(export_to(campaign, tmp_path))
    differing = 0
    for line in lines:
        notes = [f"Note: Note {int(line[of].removeprefix('Text ')) % 2}" for of in ("chosen", "rejected")]
        head, _, question = line["prompt"].rpartition("\n\n")
        assert "\n" not in question
        if notes[0] == notes[1]:
            assert (head, line["chosen_context"], line["rejected_context"]) == (
                f"Source: The house\n{notes[0]}",
                "",
                "",
            )
        else:
            differing += 1
            assert (head, line["chosen_context"], line["rejected_context"]) == ("Source: The house", *notes)
    assert 0 < differing < len(lines)


def test_an_open_campaign_has_a_file_without_lines(campaign, tmp_path):
    assert lines_of(export_to(campaign, tmp_path)) == []


@pytest.mark.parametrize("name", ["preferences.jsonl", "codebook.csv"])
def test_a_campaign_that_asks_nobody_has_no_preferences(researcher, idle_tasks, tmp_path, name):
    config = make_config(chains=1, steps=2, judges=[], rule={"kind": "base"}, kernel={"kind": "independent"})
    with zipfile.ZipFile(export_to(make_campaign(researcher, config=config), tmp_path)) as archive:
        assert (name in archive.namelist()) is (name == "codebook.csv")


BODIES = {0: b"first picture" * 9000, 1: b"second picture"}


def as_painted(campaign) -> Snapshot:
    """Return a campaign as it is now, as if an image model had made its objects."""
    snapshot = Snapshot.now(campaign)
    space = sampler.ServedImagesConfig(model="small", prompt="a house", dimension=4)
    return dataclasses.replace(snapshot, config=snapshot.config.model_copy(update={"space": space}))


def test_of_pictures_a_line_has_the_names_of_their_files(researcher, idle_tasks, tmp_path):
    campaign = voted_campaign(researcher, config=make_config(chains=2, steps=4))
    votes = table(export_to(campaign, tmp_path), "votes.csv")
    campaign.states.update(media_type="image/png")
    found = [json.loads(line)["chosen"] for line in export.preferences(as_painted(campaign))]
    assert found == [f"pictures/{vote['chosen_state']}.png" for vote in votes]
    assert len(set(found)) > 1


@pytest.fixture
def painted(researcher, idle_tasks):
    """A snapshot of a campaign whose rows are those of an image model: no model runs here."""
    campaign = make_campaign(researcher, config=make_config(chains=2, steps=2))
    for index, body in BODIES.items():
        name = media.rendered_name(campaign.pk, str(index))
        default_storage.save(name, ContentFile(body))
        campaign.states.filter(index=index).update(weight=None, picture=name, media_type="image/png")
    return as_painted(campaign)


def test_a_lost_file_is_left_out_and_named_in_the_log(painted, caplog):
    lost = media.rendered_name(painted.campaign.pk, "0")
    default_storage.delete(lost)
    assert [name for name, pieces in export.stored_files(painted) if list(pieces)] == ["pictures/1.png"]
    assert lost in caplog.text


def test_an_archive_holds_them_beside_its_tables(painted):
    from zipstream import ZipStream

    stream = ZipStream(compress_type=zipfile.ZIP_DEFLATED)
    stream.add("{}", "campaign.json")
    manifest = sampler.Manifest()
    body = b"".join(export._to_its_end(stream, painted, manifest))
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["campaign.json", "pictures/0.png", "pictures/1.png", "manifest.json"]
        assert manifest.files["pictures/0.png"] == hashlib.sha256(BODIES[0]).hexdigest()
        assert archive.read("pictures/0.png") == BODIES[0]


ODD_COLUMNS = "text,Année,an-née,=sum\n" + "".join(f"Text {index},{index},x,=1+1\n" for index in range(6))


def test_an_uploaded_lists_columns_stand_with_its_objects(researcher, idle_tasks, tmp_path):
    voted = voted_campaign(researcher, file=ODD_COLUMNS, config=make_config(chains=2, steps=4))
    path = export_to(voted, tmp_path)
    row = table(path, "states.csv")[2]
    assert list(row)[6:] == ["meta_année", "meta_an_née", "meta_sum"]
    # No spreadsheet may run it; whoever reads the record gets it as it was uploaded.
    assert list(row.values())[6:] == ["2", "x", "'=1+1"]
    assert sampler.read_record(path)["states"][2]["meta_sum"] == "=1+1"
    assert_replay_passes(path)
    told = refused_by_replay(rewrite(path, "states.csv", lambda rows: rows[0].update(meta_année="7")), "1 difference")
    assert "“meta_année” of state 0 in states.csv: the export has “7”, expected “0”" in told
    further = rewrite(path, "states.csv", lambda rows: [row.update(meta_ghost="1") for row in rows])
    assert "the column “meta_ghost” of states.csv" in refused_by_replay(further)
