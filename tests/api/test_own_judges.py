"""Programs that judge: a campaign from its creation to its verified record, and whatever a token may not do."""

import re
from datetime import timedelta

import httpx
import numpy as np
import pytest
from django.test import override_settings
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import programs as engine
from prefmh_web.campaigns.lifecycle import programs
from prefmh_web.campaigns.models import JudgeToken, ProgramLease, Side, Vote
from prefmh_web.campaigns.monitoring.programs import programs_of
from prefmh_web.client import Judge, RequestRefused, verify
from prefmh_web.transport import rate_limits
from tests.api.test_campaigns import TEXTS, zipped
from tests.security.world import SMILES, browser_of
from tests.support.files import archive, picture
from tests.support.sounds import recording
from tests.support.stack import make_campaign, make_recipe, wait_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
SETUP = """\
version: 1
name: Judged by a program
space: {kind: catalog, objects: texts}
file: {name: texts.csv}
kernel: {kind: independent}
judges: [{question: Which is shorter?, budget: 1, source: {kind: program, name: by length}}]
chains: 2
steps: 12
"""


def test_a_program_runs_a_whole_campaign_and_is_its_judge(site, live_site, tmp_path):
    """Created, started, judged, watched, downloaded and verified with the client alone."""
    made = site.create(zipped(tmp_path, SETUP, TEXTS))
    site.wait_for(made.number, lambda found: found.status == "draft", seconds=10)
    wait_until_idle()
    site.start(made.number)
    with Judge(live_site.url, site.judge_token(made.number, 0)) as judge:
        for question in judge.questions("worker-1"):
            shorter = len(question.first.text) < len(question.second.text)
            assert judge.answer(question, "first" if shorter else "second").counted
    done = site.wait_for(made.number, lambda found: found.status == "finished", seconds=30)
    assert done.steps_decided == 24
    record = tmp_path / "record.zip"
    site.download(made.number, record)
    assert verify(record) == []
    votes = list(site.rows(made.number, "votes"))
    assert {(vote["source"], vote["endpoint"], vote["annotator"]) for vote in votes} == {("program", "by length", None)}


def judged_by(source: dict, *, budget: int = 1, **changes) -> dict:
    judges = [
        {"question": "Which is shorter?", "budget": budget, "source": {"kind": "program", "name": "mine"} | source}
    ]
    return make_recipe(**{"judges": judges, "chains": 2, "steps": 3} | changes)


@pytest.fixture
def campaign(researcher, idle_tasks):
    return make_campaign(researcher, recipe=judged_by({}))


@pytest.fixture
def token(campaign, researcher) -> str:
    return programs.make_token(campaign.judges.get(), researcher)


@pytest.fixture
def send(live_site, token):
    """Send a request with a judge's token."""

    def request(method: str, path: str, shown: str = token, **sent) -> httpx.Response:
        headers = {"Authorization": f"Bearer {shown}"}
        return httpx.request(method, f"{live_site.url}/api{path}", headers=headers, timeout=30, **sent)

    return request


def asked(send, **sent) -> dict:
    return send("POST", "/judge/questions", json={}, **sent).json()["question"]


def test_nothing_tells_which_object_is_the_proposal(send, campaign):
    """Neither the question nor its headers hold a number of a step, a chain or an object, a uniform or a vote."""
    answer = send("POST", "/judge/questions", json={})
    question = answer.json()["question"]
    assert set(question) == {"key", "question", "objects", "first", "second", "context", "expires_at"}
    assert set(question["first"]) == {"text", "picture", "sound", "context"}
    lease = ProgramLease.objects.get(key=question["key"])
    assert question["first"]["text"] == lease.first.content
    assert question["second"]["text"] == lease.second.content
    told = answer.text + repr(list(answer.headers.items()))
    assert str(lease.comparison.uniform) not in told
    assert "proposal" not in told


def test_both_orders_come(researcher, idle_tasks):
    """The proposal is first about as often as second: of 60, within 4 standard deviations of the binomial law."""
    made = make_campaign(researcher, recipe=judged_by({}, chains=60))
    judge = made.judges.get()
    sides = [lease.proposal_side for _ in range(60) if (lease := engine.take(made, judge.pk))]
    assert abs(sides.count("left") - len(sides) / 2) <= 4 * (len(sides) / 4) ** 0.5


def test_molecules_come_as_smiles_with_a_drawing(researcher, live_site):
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    made = make_campaign(researcher, file=SMILES, filename="m.csv", recipe=judged_by({}, space=space))
    with Judge(live_site.url, programs.make_token(made.judges.get())) as judge:
        question = next(judge.questions())
        assert question.objects == "molecules"
        assert {question.first.text, question.second.text} <= set(SMILES.split())
        assert judge.picture(question, "second").startswith(b"\x89PNG")


def test_images_come_as_bytes_to_this_token_alone(researcher, live_site, send):
    files = {f"{colour}.png": picture(colour) for colour in ("red", "green", "blue")}
    space = {"kind": "catalog", "objects": "images", "neighbours": 2}
    made = make_campaign(researcher, file=archive(files), filename="i.zip", recipe=judged_by({}, space=space))
    with Judge(live_site.url, programs.make_token(made.judges.get())) as judge:
        question = next(judge.questions())
        assert question.first.text == ""
        lease = ProgramLease.objects.get(key=question.key)
        pictures = [judge.picture(question, "first"), judge.picture(question, "second")]
        assert pictures == [files[lease.first.content], files[lease.second.content]]
        address = question.first.picture
        assert httpx.get(f"{live_site.url}{address}").status_code == 401
        assert send("GET", address.removeprefix("/api")).status_code == 404


def test_recordings_come_as_bytes(researcher, live_site):
    files = {f"{hertz}.wav": recording(hertz) for hertz in (220, 440)}
    space = {"kind": "catalog", "objects": "audio", "neighbours": 1}
    made = make_campaign(researcher, file=archive(files), filename="a.zip", recipe=judged_by({}, space=space))
    with Judge(live_site.url, programs.make_token(made.judges.get())) as judge:
        question = next(judge.questions())
        assert (question.objects, question.first.text, question.first.picture) == ("audio", "", "")
        assert question.first.sound
        heard = [sampler.describe_audio(judge.sound(question, place)).brightness for place in ("first", "second")]
        lease = ProgramLease.objects.get(key=question.key)
        told = [float(each.content.removesuffix(".wav")) for each in (lease.first, lease.second)]
        assert heard == pytest.approx(told, abs=10)


def test_a_judges_token_does_nothing_else(send, campaign, token):
    for method, path in (
        ("GET", "/campaigns"),
        ("GET", f"/campaigns/{campaign.pk}"),
        ("GET", f"/campaigns/{campaign.pk}/votes"),
        ("POST", f"/campaigns/{campaign.pk}/pause"),
        ("POST", f"/campaigns/{campaign.pk}/judges/0/token"),
        ("DELETE", f"/campaigns/{campaign.pk}/judges/0/token"),
    ):
        assert send(method, path).status_code == 401, path
    assert token not in str(JudgeToken.objects.values().get())


def test_a_researchers_token_is_no_judge(site, campaign):
    with pytest.raises(RequestRefused) as refused:
        site._json("POST", "/judge/questions", json={})
    assert refused.value.status == 401
    assert "prefmh-judge_…" in refused.value.problems[0].message
    assert "“Programs”" in refused.value.problems[0].message


def test_who_has_no_token_is_told_which_one_to_send(live_site, campaign):
    for path, token in (("judge", "prefmh-judge_…"), ("campaigns", "prefmh_…")):
        answer = httpx.get(f"{live_site.url}/api/{path}")
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert f"Bearer {token}”" in answer.json()["problems"][0]["message"]


def test_a_question_of_another_judge_is_not_there(send, researcher):
    other = make_campaign(researcher, recipe=judged_by({}), name="Another")
    theirs = programs.make_token(other.judges.get())
    key = asked(send, shown=theirs)["key"]
    assert send("POST", f"/judge/questions/{key}/answer", json={"chosen": "first"}).status_code == 404
    assert send("POST", f"/judge/questions/{key}/skip").status_code == 404
    assert send("GET", f"/judge/questions/{key}/first").status_code == 404
    assert not Vote.objects.exists()


def test_a_new_token_replaces_the_one_before_and_a_withdrawn_one_is_refused(send, site, campaign, token):
    key = asked(send)["key"]
    new = site.judge_token(campaign.pk, 0)
    assert send("POST", f"/judge/questions/{key}/answer", json={"chosen": "first"}).status_code == 401
    assert send("POST", f"/judge/questions/{key}/answer", shown=new, json={"chosen": "first"}).status_code == 200
    site.withdraw_judge_token(campaign.pk, 0)
    assert send("GET", "/judge", shown=new).status_code == 401
    kinds = list(campaign.events.values_list("kind", flat=True))
    assert kinds == ["judge-token-made", "judge-token-made", "judge-token-withdrawn"]


def test_a_judge_of_people_has_no_token(site, researcher):
    of_people = make_campaign(researcher)
    with pytest.raises(RequestRefused) as refused:
        site.judge_token(of_people.pk, 0)
    assert refused.value.status == 409
    with pytest.raises(RequestRefused) as refused:
        site.judge_token(of_people.pk, 7)
    assert refused.value.status == 404


def test_a_program_that_may_only_read_makes_no_token(reader, campaign):
    for refused_for in (reader.judge_token, reader.withdraw_judge_token):
        with pytest.raises(RequestRefused) as refused:
            refused_for(campaign.pk, 0)
        assert refused.value.status == 403
    assert [each.source for each in reader.judges(campaign.pk)] == ["program"]


def test_answers_that_come_too_late_are_refused_in_a_sentence(send):
    question = asked(send)
    ProgramLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = send("POST", f"/judge/questions/{question['key']}/answer", json={"chosen": "first"})
    assert answer.status_code == 409
    assert "time of this question is over" in answer.json()["problems"][0]["message"]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/answer", {"json": {"chosen": "left"}}),
        ("/answer", {"json": {}}),
        ("/answer", {"content": b"{"}),
        ("/answer", {"data": {"chosen": "first"}}),
    ],
)
def test_what_is_no_answer_is_refused(send, path, sent):
    key = asked(send)["key"]
    answer = send("POST", f"/judge/questions/{key}{path}", **sent)
    assert answer.status_code in (400, 415, 422)
    assert answer.json()["problems"][0]["message"]
    assert not Vote.objects.exists()


def test_a_huge_body_and_an_odd_worker_are_refused(send):
    assert send("POST", "/judge/questions", content=b" " * 3_000_000).status_code == 413
    assert send("POST", "/judge/questions", json={"worker": "x" * 61}).status_code == 422
    assert send("POST", "/judge/questions", json={"worker": "a\x00b"}).status_code == 422
    assert not ProgramLease.objects.exists()


def test_a_flood_is_told_when_to_come_back(send, campaign):
    with override_settings(RATE_LIMITS={"api-judge": "2/minute"}):
        rate_limits.forget()
        answers = [send("GET", "/judge") for _ in "123"]
    rate_limits.forget()
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["Retry-After"]) >= 1


def test_who_holds_too_many_questions_is_told_so(researcher, live_site, send):
    made = make_campaign(researcher, recipe=judged_by({"independent": True}, budget=4, chains=60))
    judge = made.judges.get()
    for _ in range(engine.MOST_HELD):
        assert engine.take(made, judge.pk)
    answer = send("POST", "/judge/questions", shown=programs.make_token(judge), json={})
    assert answer.status_code == 429
    assert "holds 64 questions" in answer.json()["problems"][0]["message"]
    assert int(answer.headers["Retry-After"]) >= 1


def test_without_a_question_a_program_is_told_when_to_ask_again(send, campaign):
    while asked(send):
        pass
    answer = send("POST", "/judge/questions", json={})
    assert (answer.json()["status"], answer.json()["question"]) == ("running", None)
    assert answer.headers["Retry-After"] == str(answer.json()["ask_again_s"]) == "2"
    lifecycle.pause(campaign)
    answer = send("POST", "/judge/questions", json={})
    assert (answer.json()["status"], answer.headers["Retry-After"]) == ("paused", "15")


def test_a_program_that_answers_twice_on_a_pair_needs_the_declaration(site, tmp_path):
    bad = SETUP.replace("budget: 1", "budget: 2")
    with pytest.raises(RequestRefused) as refused:
        site.create(zipped(tmp_path, bad, TEXTS))
    problem = refused.value.problems[0]
    assert problem.path == "judges.0.source.independent"
    assert "independent draws" in problem.message
    assert site.create(zipped(tmp_path, bad.replace("by length}", "by length, independent: true}"), TEXTS)).created


def test_two_judges_that_are_one_program_need_it_too():
    judges = [{"question": "Which?", "budget": 1, "order": order, "source": {"kind": "program", "name": "mine"}}
              for order in ("proposal-first", "proposal-second")]  # fmt: skip
    with pytest.raises(sampler.RecipeError, match="independent draws"):
        sampler.parse_recipe(make_recipe(judges=judges))


def test_answers_that_never_differ_are_seen(site, researcher, idle_tasks):
    """A program that always prefers one object of a pair is told of; one that draws is not."""
    recipe = judged_by({"independent": True}, budget=4, chains=3, steps=12)
    for name, draw in (("stubborn", lambda lease, rng: lease.first.place < lease.second.place),
                       ("drawing", lambda lease, rng: rng.random() < 0.5)):  # fmt: skip
        made = make_campaign(researcher, recipe=recipe, name=name)
        rng, judge = np.random.default_rng(2), made.judges.get()
        while made.status != "finished":
            if lease := engine.take(made, judge.pk):
                engine.answer(made, judge.pk, lease.key, Side.LEFT if draw(lease, rng) else Side.RIGHT)
            else:
                wait_until_idle()
            made.refresh_from_db()
        [standing] = programs_of(list(made.judges.all()))
        [about] = site.judges(made.pk)
        assert (about.pairs, about.pairs_alike) == (standing.alike.of, standing.alike.count)
        assert standing.alike.of >= 10
        assert standing.never_differs == (name == "stubborn")
        page = browser_of(researcher).get(made.get_absolute_url()).content.decode()
        assert ("has never given two different answers" in page) == (name == "stubborn")


def test_the_owner_makes_and_withdraws_the_token_on_a_page(researcher, campaign, live_site):
    browser = browser_of(researcher)
    page = browser.post(f"/campaigns/{campaign.pk}/programs/0/token/").content.decode()
    plain = re.search(r'value="(prefmh-judge_[\w-]+)"', page)[1]
    with Judge(live_site.url, plain) as judge:
        assert next(judge.questions()).question == "Which is shorter?"
    listed = browser.get(f"/campaigns/{campaign.pk}/programs/").content.decode()
    assert plain not in listed
    browser.post(f"/campaigns/{campaign.pk}/programs/0/withdraw/")
    assert not JudgeToken.objects.filter(withdrawn_at=None).exists()
    assert browser.post(f"/campaigns/{campaign.pk}/programs/1/token/").status_code == 404
