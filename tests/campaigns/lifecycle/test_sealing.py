"""The seed: drawn at the start unless it was typed, hidden until the end, and then shown to fit the hash."""

import hashlib
import io
import json
import logging

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import NoReverseMatch, reverse

import sampler
from prefmh_web import drafts, hooks
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Side, Voter, columns_of
from tests.console.test_pages import form
from tests.security.world import all_addresses
from tests.support import people
from tests.support.campaigns import make_config, make_draft, started_now, voted_to_the_end
from tests.support.people import content_of
from tests.support.process import wait_until_idle
from tests.support.records import export_to, happened, table
from tests.support.sampling import files_of, hashed, with_rows, write

TYPED = 20261121


@pytest.fixture(params=[False, True], ids=["drawn", "typed"])
def running(request, researcher, idle_tasks) -> Campaign:
    """A campaign with decided and open steps, under a seed that was drawn or typed."""
    campaign = started_now(make_draft(researcher, config=make_config(chains=2, steps=9), is_seed_typed=request.param))
    people = [Voter.objects.create(campaign=campaign) for _ in range(2)]
    for number in range(9):
        if lease := leases.take(people[number % 2]):
            leases.answer(lease.key, people[number % 2], Side.FIRST, 0)
            wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_running
    return campaign


@pytest.fixture
def ended(running) -> Campaign:
    return voted_to_the_end(running)


def shapes_of(seed: int) -> list[bytes]:
    """Return the seed in every shape in which it could be written."""
    raw = [seed.to_bytes(8, order) for order in ("little", "big")]
    numbers = [str(seed), f"{seed:x}", f"{seed:X}", f"{seed:,}", repr(float(seed))]
    return raw + [number.encode() for number in numbers]


def assert_is_nowhere(seed: int, content: bytes, where: str) -> None:
    found = [shape for shape in shapes_of(seed) if shape in content]
    assert not found, f"{where} has {found}"


def all_paths(campaign: Campaign, files: list[str]) -> list[str]:
    """Return every address that there is, with what this campaign has in place of its parts."""
    names = {"campaign_id": campaign.pk, "token": campaign.invitations.get().token, "index": 0, "side": "first"}
    names |= {"state_id": campaign.states.first().pk, "voter_id": campaign.voters.first().pk}
    names |= {"comparison_id": campaign.chains.first().comparisons.first().pk}
    several = {"filename": files, "table": ["steps", "votes", "samples"]}
    found = []
    for address in all_addresses():
        [varied] = [several[part] for part in address.parts if part in several] or [[1]]
        for value in varied:
            values = {part: names.get(part, value) for part in address.parts}
            try:
                found.append(reverse(address.name, kwargs=values))
            except NoReverseMatch:
                continue
    return found


@pytest.fixture
def browsers(researcher) -> list[Client]:
    """The researcher's, and their program's."""
    plain = ApiToken.make(researcher, "a program", ApiToken.Scope.RUN)
    pages, program = Client(), Client(headers={"authorization": f"Bearer {plain}"})
    pages.force_login(researcher)
    return [pages, program]


def test_the_seed_of_a_running_campaign_is_in_no_page_answer_file_or_log(running, browsers, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    seed = running.seed
    record = export_to(running, tmp_path)
    shown = 0
    for browser in browsers:
        for path in all_paths(running, [*files_of(record), "export.zip", "properties.csv"]):
            answer = browser.get(path)
            shown += answer.status_code == 200
            assert_is_nowhere(seed, content_of(answer), path)
    assert shown > 45
    for name, content in files_of(record).items():
        assert_is_nowhere(seed, content, name)
    assert_is_nowhere(seed, people._files() + people._sessions(), "a stored file")
    out = io.StringIO()
    call_command("campaign", "export", str(running.pk), stdout=out)
    assert_is_nowhere(seed, out.getvalue().encode(), "campaign export")
    assert_is_nowhere(seed, caplog.text.encode(), "a log")


def test_what_looks_for_the_seed_finds_one_that_is_there(ended, browsers):
    """The negative control: of a campaign that has ended, pages and files have it."""
    for name in (
        reverse("console:edit", args=[ended.pk]),
        reverse("console:record", args=[ended.pk]),
        reverse("console:download", args=[ended.pk, "campaign.json"]),
    ):
        with pytest.raises(AssertionError, match=" has "):
            assert_is_nowhere(ended.seed, content_of(browsers[0].get(name)), name)


def test_the_start_draws_the_seed_unless_it_was_typed(running):
    assert (running.seed == TYPED) is running.is_seed_typed
    assert running.seed_hash == sampler.hash_of_seed(running.seed, running.seed_salt)
    assert len(running.seed_salt) == 32


@pytest.mark.parametrize("is_typed", [True, False])
def test_a_seed_is_typed_or_not_as_it_was_when_the_start_began(researcher, idle_tasks, monkeypatch, is_typed):
    """Where models are asked first, a start takes minutes, and the setup can be edited meanwhile."""
    draft = make_draft(researcher, config=make_config(chains=2, steps=6), is_seed_typed=not is_typed)

    def somebody_edits(starting: Campaign) -> None:
        if Campaign.objects.get(pk=draft.pk).is_draft:
            edited = draft.typed_config.model_copy(update={"seed": TYPED if is_typed else None})
            Campaign.objects.filter(pk=draft.pk).update(**columns_of(edited))

    monkeypatch.setattr(hooks, "load", lambda names: [somebody_edits])
    with pytest.raises(lifecycle.NotPossible, match="was changed in this very moment"):
        lifecycle.start(Campaign.objects.get(pk=draft.pk))
    draft.refresh_from_db()
    assert (draft.status, draft.is_seed_typed, draft.seed_hash) == (Campaign.Status.DRAFT, is_typed, "")


def test_a_running_record_has_the_hash_and_its_verdicts_are_checked(running, tmp_path, capsys):
    path = export_to(running, tmp_path)
    config = json.loads(files_of(path)["campaign.json"])
    assert (config["seed_hash"], "seed" in config, "seed_salt" in config) == (running.seed_hash, False, False)
    assert config["seed_was_typed"] is running.is_seed_typed
    steps = table(path, "steps.csv")
    assert {bool(row["uniform"]) for row in steps if not row["verdict"]} == {False}
    assert happened(path, "started") == [("started", {"seed_hash": running.seed_hash})]
    call_command("replay", str(path))
    assert "Draws wait for the seed" in capsys.readouterr().out
    found = sampler.verify(path)
    assert found.differs == ()
    assert any("The seed is not revealed yet" in each for each in found.proven)


def flip_verdict(rows):
    step = next(row for row in rows if row["verdict"])
    step["verdict"] = {"accept": "reject", "reject": "accept"}[step["verdict"]]


def close_an_open_step(rows):
    step = next(row for row in rows if not row["verdict"])
    step.update(verdict="accept", uniform="0.5")


@pytest.mark.parametrize("change", [flip_verdict, close_an_open_step, lambda rows: rows.pop(0)])
def test_a_verdict_of_a_running_record_that_was_changed_is_found(running, tmp_path, change):
    changed = with_rows(files_of(export_to(running, tmp_path)), "steps.csv", change)
    found = sampler.verify(write(hashed(changed), tmp_path / "changed.zip"))
    assert "steps.csv" in {each.file for each in found.differs}


def test_the_end_tells_the_seed_who_chose_it_and_that_it_is_the_one_of_the_hash(ended, browsers, tmp_path):
    path = export_to(ended, tmp_path)
    config = json.loads(files_of(path)["campaign.json"])
    assert config["seed_hash"] == hashlib.sha256(f"{config['seed']} {config['seed_salt']}".encode()).hexdigest()
    assert config["seed"] == ended.seed
    found = sampler.verify(path)
    assert found.differs == ()
    assert any(f"The seed is the one of the hash {ended.seed_hash}" in each for each in found.proven)
    assert config["seed_was_typed"] is ended.is_seed_typed
    said = "somebody typed it" if ended.is_seed_typed else "the start drew it"
    assert any(said in each for each in found.claimed)
    assert [row["kind"] for row in table(path, "events.csv")] == ["started", "seed-revealed"]
    page = browsers[0].get(reverse("console:record", args=[ended.pk])).content.decode()
    assert all(each in page for each in (ended.seed_hash, str(ended.seed), ended.seed_salt))


def test_a_seed_that_was_told_stays_so_when_the_campaign_is_extended(ended, tmp_path):
    changes.extend(ended, 3)
    ended.refresh_from_db()
    assert not ended.is_draft
    assert (ended.status, ended.hides_seed) == (Campaign.Status.PAUSED, False)
    found = sampler.verify(export_to(ended, tmp_path))
    assert found.differs == ()
    assert any("Steps were added" in each for each in found.claimed)


def test_nobody_learns_a_drawn_seed_by_guessing(researcher, browsers, idle_tasks):
    running = started_now(make_draft(researcher, is_seed_typed=False))
    seed, told = running.seed, set()
    assert drafts.warning_of_seed(seed, researcher) == ""
    for guess in (seed, seed ^ 1):
        with pytest.raises(lifecycle.NotPossible, match="“Seed of all random numbers” cannot change") as refused:
            changes.apply(running, running.typed_config.model_copy(update={"seed": guess}))
        told.add(str(refused.value))
        path = reverse("console:edit", args=[running.pk])
        page = browsers[0].post(path, form(seed=str(guess), **{"space.catalog.file": ""}), follow=True).content.decode()
        assert "cannot change after the start" in page
    assert len(told) == 1


@pytest.mark.parametrize("typed", ["", "7"])
def test_a_draft_that_is_saved_again_stays_as_it_is_and_shows_a_typed_seed_only(browsers, idle_tasks, typed):
    browsers[0].post(reverse("console:create"), form(seed=typed))
    draft = Campaign.objects.get()
    assert draft.is_seed_typed is bool(typed)
    path = reverse("console:edit", args=[draft.pk])
    assert (f'name="seed" value="{draft.seed}"' in browsers[0].get(path).content.decode()) is bool(typed)
    browsers[0].post(path, form(seed=typed, **{"space.catalog.file": ""}))
    assert Campaign.objects.get().seed == draft.seed
