"""A certified campaign: its seed is drawn at the start, hidden until the end, and then shown to fit the hash."""

import hashlib
import io
import json
import logging

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import NoReverseMatch, reverse

import sampler
from prefmh_web import hooks
from prefmh_web.accounts import tokens
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import drafts, extension
from prefmh_web.campaigns.models import Annotator, Campaign, Side
from prefmh_web.campaigns.record import export
from prefmh_web.setup import duplicate, twins
from tests.console.test_pages import form
from tests.security.addresses import all_addresses
from tests.support import everywhere
from tests.support.record import export_to, table
from tests.support.signing import files_of, signed, with_rows, write
from tests.support.stack import invitation_path, make_draft, make_recipe, vote_until_finished, wait_until_idle

SCORES = dict.fromkeys((0, 1), lambda place: place / 5)
TYPED = 20261121


@pytest.fixture
def running(researcher, idle_tasks) -> Campaign:
    """A certified campaign with decided and open steps."""
    campaign = make_draft(researcher, recipe=make_recipe(chains=2, steps=6), is_certified=True)
    lifecycle.start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    people = [Annotator.objects.create(campaign=campaign) for _ in range(2)]
    for number in range(9):
        if lease := leases.take(people[number % 2]):
            leases.answer(lease.key, people[number % 2], Side.LEFT, 0)
            wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_running
    return campaign


@pytest.fixture
def ended(running) -> Campaign:
    vote_until_finished(running, list(running.annotators.all()), SCORES, np.random.default_rng(3))
    return running


def shapes_of(seed: int) -> list[bytes]:
    """Return the seed in every shape in which it could be written."""
    raw = [seed.to_bytes(8, order) for order in ("little", "big")]
    numbers = [str(seed), f"{seed:x}", f"{seed:X}", f"{seed:,}", repr(float(seed))]
    return raw + [number.encode() for number in numbers]


def assert_is_nowhere(seed: int, content: bytes, where: str) -> None:
    found = [shape for shape in shapes_of(seed) if shape in content]
    assert not found, f"{where} has {found}"


def content_of(answer) -> bytes:
    if not answer.streaming:
        return answer.content

    async def read() -> bytes:
        return b"".join([part if isinstance(part, bytes) else part.encode() async for part in answer])

    return async_to_sync(read)()


def all_paths(campaign: Campaign, files: list[str]) -> list[str]:
    """Return every address that there is, with what this campaign has in place of its parts."""
    names = {"campaign_id": campaign.pk, "token": campaign.invitations.get().token, "place": 0, "side": "left"}
    names |= {"state_id": campaign.states.first().pk, "annotator_id": campaign.annotators.first().pk}
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
    _, plain = tokens.make(researcher, "a program", ApiToken.Scope.RUN)
    pages, program = Client(), Client(headers={"authorization": f"Bearer {plain}"})
    pages.force_login(researcher)
    return [pages, program]


def test_the_seed_of_a_running_campaign_is_in_no_page_answer_file_or_log(running, browsers, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    seed = running.recipe["seed"]
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
    assert_is_nowhere(seed, everywhere._files() + everywhere._sessions(), "a stored file")
    out = io.StringIO()
    call_command("campaign", "export", str(running.pk), stdout=out)
    assert_is_nowhere(seed, out.getvalue().encode(), "campaign export")
    assert_is_nowhere(seed, caplog.text.encode(), "a log")


def test_what_looks_for_the_seed_finds_one_that_is_there(running, browsers, tmp_path):
    """The negative control: of a campaign that is not certified, pages and files have it."""
    Campaign.objects.filter(pk=running.pk).update(seed_hash="")
    for name in (
        reverse("console:edit", args=[running.pk]),
        reverse("console:download", args=[running.pk, "recipe.json"]),
    ):
        with pytest.raises(AssertionError, match=" has "):
            assert_is_nowhere(running.recipe["seed"], content_of(browsers[0].get(name)), name)


def test_the_start_draws_another_seed_than_the_drafts(running):
    assert running.recipe["seed"] != TYPED
    assert running.seed_hash == sampler.hash_of_seed(running.recipe["seed"], running.seed_salt)
    assert len(running.seed_salt) == 32


@pytest.mark.parametrize("is_certified", [True, False])
def test_a_draft_is_certified_or_not_as_it_was_when_its_start_began(researcher, idle_tasks, monkeypatch, is_certified):
    """Where models are asked first, a start takes minutes, and the setup can be edited meanwhile."""
    draft = make_draft(researcher, recipe=make_recipe(chains=2, steps=6), is_certified=not is_certified)

    def somebody_edits(starting: Campaign) -> None:
        if Campaign.objects.get(pk=draft.pk).is_draft:
            drafts.change(Campaign.objects.get(pk=draft.pk), is_certified=is_certified)

    monkeypatch.setattr(hooks, "load", lambda names: [somebody_edits])
    with pytest.raises(lifecycle.NotPossible, match="was changed in this very moment"):
        lifecycle.start(Campaign.objects.get(pk=draft.pk))
    draft.refresh_from_db()
    assert (draft.status, draft.recipe["seed"], draft.seed_hash) == (Campaign.Status.DRAFT, TYPED, "")


def test_a_campaign_that_is_not_certified_starts_under_its_own_seed(researcher, idle_tasks, tmp_path):
    campaign = make_draft(researcher, recipe=make_recipe(chains=2, steps=6))
    lifecycle.start(campaign)
    campaign.refresh_from_db()
    assert (campaign.recipe["seed"], campaign.seed_hash, campaign.hides_seed) == (TYPED, "", False)
    files = files_of(export_to(campaign, tmp_path))
    assert json.loads(files["recipe.json"])["seed"] == TYPED
    assert b"seed_hash" not in files["steps.csv"]


def test_a_running_record_has_the_hash_and_its_verdicts_are_checked(running, tmp_path, capsys):
    path = export_to(running, tmp_path)
    recipe = json.loads(files_of(path)["recipe.json"])
    assert (recipe["seed_hash"], "seed" in recipe, "seed_salt" in recipe) == (running.seed_hash, False, False)
    steps = table(path, "steps.csv")
    assert {row["seed_hash"] for row in steps} == {running.seed_hash}
    assert {bool(row["uniform"]) for row in steps if not row["verdict"]} == {False}
    [started, *_] = table(path, "events.csv")
    assert started["detail"] == f"seed_hash={running.seed_hash}"
    call_command("replay", str(path))
    assert "Draws wait for the seed" in capsys.readouterr().out
    found = sampler.verify(path)
    assert found.differs == ()
    assert any("The seed is not told yet" in each for each in found.proven)


def flip_verdict(rows):
    step = next(row for row in rows if row["verdict"])
    step["verdict"] = {"accept": "reject", "reject": "accept"}[step["verdict"]]


def close_an_open_step(rows):
    step = next(row for row in rows if not row["verdict"])
    step.update(verdict="accept", uniform="0.5")


@pytest.mark.parametrize("change", [flip_verdict, close_an_open_step, lambda rows: rows.pop(0)])
def test_a_verdict_of_a_running_record_that_was_changed_is_found(running, tmp_path, change):
    key = export.keys.signing_key()
    changed = with_rows(files_of(export_to(running, tmp_path)), "steps.csv", change)
    found = sampler.verify(write(signed(changed, key), tmp_path / "changed.zip"))
    assert "steps.csv" in {each.file for each in found.differs}


def test_the_end_tells_the_seed_and_that_it_is_the_one_of_the_hash(ended, browsers, tmp_path):
    path = export_to(ended, tmp_path)
    recipe = json.loads(files_of(path)["recipe.json"])
    assert recipe["seed_hash"] == hashlib.sha256(f"{recipe['seed']} {recipe['seed_salt']}".encode()).hexdigest()
    assert recipe["seed"] == ended.recipe["seed"]
    found = sampler.verify(path)
    assert found.differs == ()
    assert any(f"The seed is the one of the hash {ended.seed_hash}" in each for each in found.proven)
    assert [row["kind"] for row in table(path, "events.csv")] == ["started", "seed-told"]
    page = browsers[0].get(reverse("console:record", args=[ended.pk])).content.decode()
    assert all(each in page for each in (ended.seed_hash, str(ended.recipe["seed"]), ended.seed_salt))


@pytest.mark.parametrize("name", ["seed", "seed_salt", "seed_hash"])
def test_another_seed_or_salt_is_found_however_it_is_signed(ended, tmp_path, name):
    files = files_of(export_to(ended, tmp_path))
    recipe = json.loads(files["recipe.json"])
    recipe[name] = recipe[name] + 1 if name == "seed" else "0" * len(recipe[name])
    changed = signed(files | {"recipe.json": json.dumps(recipe).encode()}, export.keys.signing_key())
    found = sampler.verify(write(changed, tmp_path / "changed.zip"))
    assert any(each.file == "recipe.json" and "the hash of its seed and salt" in each.message for each in found.differs)


def test_a_certified_record_without_its_signature_is_refused(ended, tmp_path):
    files = {name: each for name, each in files_of(export_to(ended, tmp_path)).items() if "manifest" not in name}
    del files["signature.json"]
    found = sampler.verify(write(files, tmp_path / "unsigned.zip"))
    assert [each.file for each in found.differs] == ["signature.json"]


def test_a_seed_that_was_told_stays_so_when_the_campaign_is_extended(ended, tmp_path):
    extension.extend(ended, 3)
    ended.refresh_from_db()
    assert not ended.is_draft
    assert (ended.status, ended.hides_seed) == (Campaign.Status.PAUSED, False)
    found = sampler.verify(export_to(ended, tmp_path))
    assert found.differs == ()
    assert any("Steps were added" in each for each in found.claimed)


def test_nobody_learns_by_guessing(running, researcher, browsers):
    seed = running.recipe["seed"]
    assert twins.warning_of_seed(seed, researcher) == ""
    for guess in (seed, seed ^ 1):
        with pytest.raises(lifecycle.NotPossible, match="“Certified” cannot change after the start"):
            drafts.change(running, recipe=running.recipe | {"seed": guess}, is_certified=False)
        page = browsers[0].post(
            reverse("console:edit", args=[running.pk]), form(seed=str(guess), is_certified="on", **{"catalog-file": ""})
        )
        assert "A certified campaign draws its seed at the start" in page.content.decode()


def test_a_copy_draws_its_own_seed(running, researcher):
    copy = duplicate.duplicate(running, researcher)
    assert copy.is_certified
    assert copy.recipe["seed"] != running.recipe["seed"]


@pytest.mark.parametrize(("typed", "ticked", "is_certified"), [("", "on", True), ("7", "", False), ("", "", False)])
def test_the_form_certifies_unless_a_seed_is_typed_or_it_is_unticked(browsers, idle_tasks, typed, ticked, is_certified):
    browsers[0].post(reverse("console:create"), form(seed=typed, **({"is_certified": ticked} if ticked else {})))
    assert Campaign.objects.get().is_certified is is_certified


def test_a_typed_seed_and_certified_do_not_go_together(browsers):
    page = browsers[0].post(reverse("console:create"), form(seed="7", is_certified="on")).content.decode()
    assert "A certified campaign draws its seed at the start. Empty this, or untick" in page
    assert not Campaign.objects.exists()


def test_a_draft_that_is_saved_again_stays_as_it_is_and_shows_no_seed(browsers, idle_tasks):
    browsers[0].post(reverse("console:create"), form(is_certified="on"))
    draft = Campaign.objects.get()
    path = reverse("console:edit", args=[draft.pk])
    assert str(draft.recipe["seed"]) not in browsers[0].get(path).content.decode()
    browsers[0].post(path, form(**{"catalog-file": "", "is_certified": "on"}))
    assert Campaign.objects.get().recipe["seed"] == draft.recipe["seed"]


def test_voters_pages_say_nothing_of_the_seed(running):
    page = Client().get(invitation_path(running), follow=True)
    assert_is_nowhere(running.recipe["seed"], page.content, "the voter's page")


def test_a_setup_with_a_typed_seed_cannot_be_certified(researcher, tmp_path):
    file = tmp_path / "campaign.yaml"
    call_command("campaign", "export", str(make_draft(researcher, is_certified=True).pk), stdout=(out := io.StringIO()))
    assert "certified" not in out.getvalue()
    file.write_text(out.getvalue() + "seed: 7\ncertified: true\n")
    (tmp_path / "texts.csv").write_text("text\na\nb\n")
    with pytest.raises(CommandError, match="draws its seed at the start; remove seed, or certified"):
        call_command("campaign", "check", str(file), owner=str(researcher))
