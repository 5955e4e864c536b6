"""Whole campaigns that one of the site's own models judges: from the setup to the replay of their record."""

import csv
import io
import json
import zipfile
from collections import Counter

import pytest
import torch
from django.core.management import CommandError, call_command

import sampler
from prefmh_web.campaigns import lifecycle, tasks
from prefmh_web.campaigns.model_judges import local_turns, turns
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, ModelUsage, Turn, Vote
from prefmh_web.endpoints.local.models import local_judge
from sampler import judges as model_judges
from tests.gpu.small_models import TEMPLATE, llama, tokenizer_of
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.stack import TEXTS, make_draft, make_recipe, sweep_everything, wait_until_idle

LINES = [line.rsplit(",", 1)[0] for line in TEXTS.splitlines()[1:]]
QUESTION = "Which is darker?"
WORDS = ("A", "B", *sorted({word for line in LINES for word in line.split()}), "Question:", "Text", '"""', "other")
TEMPERATURE = 1.3
CONTEXT = 512


def saved(folder, seed=5, words=WORDS):
    llama(1 + len(words), context=CONTEXT, seed=seed).save_pretrained(folder)
    tokenizer_of(words, TEMPLATE).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(autouse=True)
def offered(settings, folder):
    settings.LOCAL_MODELS, settings.LOCAL_DEVICE = {"tiny": folder}, "cpu"


def by_model(budget=3, **source) -> dict:
    source = {"kind": "local", "model": "tiny", "temperature": TEMPERATURE} | source
    return {"question": QUESTION, "budget": budget, "source": source}


def draft(owner, *judges, chains=4, steps=5, **changes) -> Campaign:
    recipe = make_recipe(judges=list(judges) or [by_model()], chains=chains, steps=steps) | changes
    return make_draft(owner, recipe=sampler.parse_recipe(recipe).model_dump(mode="json"))


def started(owner, *judges, **changes) -> Campaign:
    campaign = draft(owner, *judges, **changes)
    lifecycle.request_start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    return campaign


@pytest.fixture
def held(monkeypatch):
    """Nobody hears of turns: the test takes them itself."""
    monkeypatch.setattr(tasks.judge_here, "apply_async", lambda *_, **__: None)


def p_by_hand(proposal_first, current, proposal, raw=False) -> float:
    """Return p of a vote for the proposal: the prompt alone through the model, a softmax over the two labels."""
    first, second = (proposal, current) if proposal_first else (current, proposal)
    shown = model_judges.pairwise_messages("texts", QUESTION, model_judges.Exhibit(first), model_judges.Exhibit(second))
    system, question = (message["content"] for message in shown)
    words = f"{system} {question}" if raw else f"[system] {system} [user] {question} [assistant]"
    number = {word: place for place, word in enumerate(WORDS, start=1)}
    ids = torch.tensor([[number.get(word, number["other"]) for word in words.split()]])
    with torch.no_grad():
        last = llama(1 + len(WORDS), context=CONTEXT)(input_ids=ids).logits[0, -1].double() / TEMPERATURE
    p = float(torch.sigmoid(last[number["A"]] - last[number["B"]]))
    return p if proposal_first else 1 - p


def changed(path, name, column, value, folder):
    """Return a copy of an export in which one cell of the first row of a table is another."""
    copy = folder / "changed.zip"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for each in old.namelist():
            content = old.read(each)
            if each == name:
                rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
                rows[1][rows[0].index(column)] = value
                out = io.StringIO(newline="")
                csv.writer(out).writerows(rows)
                content = out.getvalue().encode()
            new.writestr(each, content)
    return copy


class TestRecord:
    @pytest.mark.parametrize("raw", [False, True])
    def test_a_campaign_runs_to_its_end_and_its_record_replays(self, researcher, tmp_path, raw):
        campaign = started(researcher, by_model(raw=raw))
        assert campaign.status == Campaign.Status.FINISHED, campaign.start_trouble
        assert_record_is_whole(campaign)
        path = export_to(campaign, tmp_path)
        assert "20 verdicts" in assert_replay_passes(path)
        contents = {row["state"]: row["content"] for row in table(path, "states.csv")}
        steps = {(row["chain"], row["step"]): row for row in table(path, "steps.csv")}
        votes = table(path, "votes.csv")
        for vote in votes:
            step = steps[vote["chain"], vote["step"]]
            pair = contents[step["current"]], contents[step["proposal"]]
            expected = p_by_hand(vote["proposal_side"] == "left", *pair, raw=raw)
            assert float(vote["preference"]) == pytest.approx(expected, abs=1e-5)
        assert {vote["endpoint"] for vote in votes} == {"tiny"}
        assert {vote["proposal_side"] for vote in votes} == {"left", "right"}

    def test_two_hundred_chains_run_to_their_end_and_their_record_replays(self, researcher, tmp_path):
        campaign = started(researcher, chains=200, steps=5)
        wait_until_idle(timeout=300)
        campaign.refresh_from_db()
        assert campaign.status == Campaign.Status.FINISHED, campaign.start_trouble
        assert_record_is_whole(campaign)
        assert "1000 verdicts" in assert_replay_passes(export_to(campaign, tmp_path)).replace(",", "")

    def test_the_file_of_judges_names_the_weights(self, researcher, folder, tmp_path):
        campaign = started(researcher)
        with zipfile.ZipFile(export_to(campaign, tmp_path)) as archive:
            [judge] = json.loads(archive.read("judges.json"))
            recipe = json.loads(archive.read("recipe.json"))
        assert recipe["judges"][0]["source"] == by_model()["source"] | {"first": False}
        assert (judge["source"], judge["local_model"], judge["temperature"]) == ("local", "tiny", TEMPERATURE)
        assert judge["chat_template"] is True
        assert judge["label_tokens"] == {"A": [1], "B": [2]}
        assert judge["computed_in"] == "float32 on cpu"
        [identity] = judge["identities"]
        assert identity["system_fingerprint"] == f"sha256:{judge['files_sha256']}"
        assert len(judge["files_sha256"]) == 64

    @pytest.mark.parametrize(
        ("column", "value", "reason"),
        [("preference", None, "drawn from p"), ("identity", "99", "one that counted")],
    )
    def test_a_changed_vote_does_not_replay(self, researcher, tmp_path, column, value, reason):
        path = export_to(started(researcher), tmp_path)
        if column == "preference":
            # A p that would have drawn the other answer.
            value = "0.0" if table(path, "votes.csv")[0]["for_proposal"] == "1" else "1.0"
        copy, out = changed(path, "votes.csv", column, value, tmp_path), io.StringIO()
        with pytest.raises(CommandError):
            call_command("replay", str(copy), stdout=out, stderr=out)
        assert reason in out.getvalue()

    def test_people_are_asked_after_it_where_it_is_asked_first(self, researcher):
        judges = by_model(first=True), {"question": "Which is better?", "budget": 1}
        campaign = started(researcher, *judges)
        assert Judge.objects.get(campaign=campaign, place=0).is_asked_first
        assert campaign.status == Campaign.Status.RUNNING
        assert not Turn.objects.exists()


class TestPromises:
    def test_all_that_waits_goes_through_the_model_together_and_once(self, researcher, held):
        campaign = started(researcher, chains=6)
        judge = campaign.judges.get()
        local_turns.take_turns(judge.pk)
        usage = ModelUsage.objects.get(campaign=campaign, place=0)
        votes = Vote.objects.filter(judge=judge)
        assert votes.values("comparison").distinct().count() == 6
        # One row for each order of each pair, and no money.
        orders = votes.values("comparison", "proposal_side").distinct().count()
        assert (usage.requests, usage.cost, usage.failed) == (orders, 0.0, 0)
        assert usage.tokens_in > 50 * orders

    def test_two_workers_at_once_store_each_vote_once(self, researcher, held):
        campaign = started(researcher)
        judge = campaign.judges.get()
        open_ones = list(local_turns._open_for(judge))
        taken = [local_turns._claim(pk, judge) for pk in open_ones[:2]]
        # The other one, meanwhile, takes what is left.
        local_turns.take_turns(judge.pk)
        assert not Vote.objects.filter(comparison__in=open_ones[:2]).exists()
        assert Vote.objects.filter(comparison__in=open_ones[2:]).exists()
        outcomes, admitted = local_turns._asked(judge, taken)
        for _ in range(2):
            for each, outcome in zip(taken, outcomes, strict=True):
                local_turns._store(each, outcome, admitted)
        slots = Counter(Vote.objects.filter(judge=judge).values_list("comparison", "slot"))
        assert set(slots.values()) == {1}

    def test_turns_of_a_killed_worker_are_found_by_the_sweep(self, researcher, held, monkeypatch):
        campaign = started(researcher)
        judge = campaign.judges.get()
        for pk in list(local_turns._open_for(judge)):
            assert local_turns._claim(pk, judge) is not None
        # It dies here. Until its claims run out, nobody asks.
        assert list(local_turns.waiting()) == []
        local_turns.take_turns(judge.pk)
        assert not Vote.objects.exists()
        Turn.objects.update(until=campaign.started_at)
        assert list(local_turns.waiting()) == [judge.pk]
        monkeypatch.undo()
        sweep_everything()
        wait_until_idle()
        campaign.refresh_from_db()
        assert campaign.status == Campaign.Status.FINISHED

    def test_what_is_more_than_one_pass_is_taken_by_the_next(self, researcher, monkeypatch):
        monkeypatch.setattr(local_turns, "MOST_AT_ONCE", 2)
        campaign = started(researcher, chains=5, steps=3)
        assert campaign.status == Campaign.Status.FINISHED
        assert_record_is_whole(campaign)

    def test_a_cap_counts_rows_and_stops_them(self, researcher):
        campaign = draft(researcher)
        Campaign.objects.filter(pk=campaign.pk).update(request_cap=9)
        campaign.refresh_from_db()
        lifecycle.request_start(campaign)
        wait_until_idle()
        sweep_everything()
        wait_until_idle()
        campaign.refresh_from_db()
        assert campaign.status == Campaign.Status.PAUSED
        assert "cap of 9 requests" in campaign.paused_because
        assert 0 < ModelUsage.objects.get(campaign=campaign).requests <= 9
        lifecycle.caps.change(campaign, researcher, cost_cap=None, request_cap=None)
        lifecycle.resume(campaign)
        sweep_everything()
        wait_until_idle()
        campaign.refresh_from_db()
        assert campaign.status == Campaign.Status.FINISHED
        assert_record_is_whole(campaign)

    def test_other_weights_under_the_name_stop_the_judge_until_somebody_accepts_them(
        self, researcher, held, settings, tmp_path, monkeypatch
    ):
        campaign = started(researcher)
        judge = campaign.judges.get()
        settings.LOCAL_MODELS = {"tiny": saved(tmp_path / "tiny", seed=6)}
        local_turns.take_turns(judge.pk)
        judge.refresh_from_db()
        assert "now answers as “tiny” (fingerprint sha256:" in judge.stopped_because
        assert not Vote.objects.exists()
        assert list(local_turns.waiting()) == []
        monkeypatch.undo()
        turns.try_again(campaign, accepting=True)
        wait_until_idle()
        campaign.refresh_from_db()
        assert campaign.status == Campaign.Status.FINISHED
        export_to(campaign, tmp_path)
        assert_replay_passes(tmp_path / "export.zip")

    def test_a_model_that_fails_suspends_its_turns_and_says_why(self, researcher, held, settings):
        campaign = started(researcher)
        judge = campaign.judges.get()
        settings.LOCAL_MODELS = {"other": settings.LOCAL_MODELS["tiny"]}
        local_turns.take_turns(judge.pk)
        reasons = set(Turn.objects.values_list("reason", flat=True))
        assert reasons == {"tiny: tiny cannot be run here: model must be one that this site offers (other), not 'tiny'"}
        assert list(local_turns.waiting()) == []
        assert turns.try_again(campaign) == Comparison.objects.count()


class TestStart:
    def test_a_model_that_the_site_does_not_offer_is_told_with_the_question(self, researcher):
        campaign = started(researcher, by_model(model="large"))
        assert campaign.status == Campaign.Status.DRAFT
        assert "“large” cannot answer question 1, “Which is darker?”" in campaign.start_trouble
        assert "offers (tiny)" in campaign.start_trouble

    def test_objects_that_do_not_fit_into_the_context_are_told(self, researcher):
        recipe = make_recipe(judges=[by_model()], chains=1, steps=1)
        long = "text,weight\n" + "\n".join(f"{'sea ' * count},1" for count in (300, 290, 5, 6))
        campaign = make_draft(researcher, file=long, recipe=recipe)
        lifecycle.request_start(campaign)
        wait_until_idle()
        campaign.refresh_from_db()
        assert "more than the 512 of the model's context. Shorten the texts" in campaign.start_trouble

    def test_a_model_without_labels_is_told(self, researcher, settings, tmp_path):
        settings.LOCAL_MODELS = {"tiny": saved(tmp_path / "tiny", words=("x", "y", "other"))}
        campaign = started(researcher)
        assert "tokens for A and for B" in campaign.start_trouble

    def test_ratings_are_for_models_behind_endpoints(self):
        recipe = make_recipe(judges=[by_model()], rule={"kind": "pointwise", "form": "separate"})
        with pytest.raises(sampler.RecipeError, match="runs itself compares, it does not rate"):
            sampler.parse_recipe(recipe)

    def test_the_setup_form_offers_it_and_keeps_what_was_chosen(self, researcher, client):
        campaign = draft(researcher, by_model(raw=True, first=True))
        client.force_login(researcher)
        page = client.get(f"{campaign.get_absolute_url()}setup/").content.decode()
        assert "tiny (runs on this site)" in page
        assert "Leave out the chat template" in page


def test_the_hash_is_of_the_files_that_decide(folder, settings, tmp_path):
    one = local_judge("tiny").fingerprint
    copy = saved(tmp_path / "copy")
    (copy / "README.md").write_text("other words")
    settings.LOCAL_MODELS = {"tiny": copy}
    assert local_judge("tiny").fingerprint == one
    for number, change in enumerate(({"seed": 6}, {"words": (*WORDS[:-1], "another")})):
        settings.LOCAL_MODELS = {"tiny": saved(tmp_path / f"other{number}", **change)}
        assert local_judge("tiny").fingerprint != one
    settings.LOCAL_MODELS = {"tiny": saved(tmp_path / "written")}
    judge = local_judge("tiny", raw=True)
    saved(tmp_path / "written", seed=7)
    # What was loaded is what votes, whatever lies in the folder now.
    assert local_judge("tiny", raw=True) == judge
