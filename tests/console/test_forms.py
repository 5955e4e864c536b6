"""The setup's form is made of the declaration: what it shows comes back as it was, and every bound is told.

Setting up what is asked of people beside their votes.

Setting up a campaign on an image model's pictures, and its pages, in processes that have no PyTorch.
"""

import annotated_types as at
import numpy as np
import pytest
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from hypothesis import HealthCheck, given, settings

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Chain, Invitation, Judge, Lease, State, columns_of
from prefmh_web.config import CampaignConfig, Protocol
from prefmh_web.console.forms.fields import Lines, Text, as_sent, bounds_of
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.forms.setup_form import SetupForm, UsualMoves, usual_kernel
from prefmh_web.console.views.study import ParticipantsForm, ProtocolForm
from prefmh_web.objects import media
from tests.console.test_pages import as_shown, form
from tests.drafts.configs import CONFIGS, USUAL, config_of, configs
from tests.endpoints.test_local_models import pipeline_folder, without_the_extra
from tests.participants.test_stages import ABOUT, MOLECULES, READ, UNDERSTOOD
from tests.support.campaigns import create_draft, make_config, make_draft, set_study
from tests.support.people import WHOLE, arrive, content_of, go_on, prolific, recruited_campaign
from tests.support.uploads import archive, picture


def posted_of(form: SchemaForm) -> QueryDict:
    """Return what a browser sends of a form that nobody has touched."""
    sent = QueryDict(mutable=True)
    for name, leaf in form.leaves.items():
        if not leaf.why_fixed:
            sent.setlist(name, [each.replace("\n", "\r\n") for each in as_sent(leaf.field, leaf.bound.value())])
    return sent


def made(kind: type[SchemaForm], campaign: Campaign, sent: QueryDict | None = None) -> SchemaForm:
    return SetupForm(campaign, campaign.owner, sent) if kind is SetupForm else kind(campaign, sent)


def assert_comes_back(config: CampaignConfig, researcher) -> None:
    """Demand that the forms with a configuration, sent as they were shown, stand for the same one."""
    campaign = Campaign(owner=researcher, **columns_of(config))
    for kind in (SetupForm, ParticipantsForm, ProtocolForm):
        form = made(kind, campaign, posted_of(made(kind, campaign)))
        assert form.is_valid(), form.error_list
        assert form.config == config


@pytest.mark.parametrize("kind", CONFIGS)
def test_what_nobody_has_changed_comes_back_as_it_was(kind, researcher):
    assert_comes_back(config_of(kind), researcher)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=configs())
def test_whatever_the_declaration_allows_comes_back_as_it_was(config, researcher):
    assert_comes_back(config, researcher)


def test_a_warm_up_finds_the_distance_whatever_length_is_named_for_without_it():
    assert usual_kernel(UsualMoves(length=1), config_of("texts").model_dump() | {"chains": 40})["warm_up"]


def bounded(form: SchemaForm):
    """Yield each field with a number that is one beyond its bound."""
    for name, leaf in form.leaves.items():
        bounds = bounds_of(leaf.info)
        step = 100 if leaf.shown.unit == "percent" else 1
        if at.Ge in bounds and isinstance(bounds[at.Ge].ge, int | float):
            yield name, bounds[at.Ge].ge * step - 1
        if at.Le in bounds and isinstance(bounds[at.Le].le, int | float):
            yield name, bounds[at.Le].le * step + 1
        if at.MaxLen in bounds and isinstance(form.fields[name], Text) and not isinstance(form.fields[name], Lines):
            yield name, "x" * (bounds[at.MaxLen].max_length + 1)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *((SetupForm, CONFIGS[name]) for name in ("texts", "molecules", "images", "list", "orders", "score")),
        *((kind, {"study": {"recruiter": "open"}}) for kind in (ParticipantsForm, ProtocolForm)),
    ],
)
def test_each_bound_broken_by_one_is_refused_beside_its_field(kind, changes, researcher):
    campaign = Campaign(owner=researcher, **columns_of(CampaignConfig.model_validate(USUAL | changes)))
    shown, tried = made(kind, campaign), 0
    used = {leaf.name for leaf in shown.root.in_use()}
    for name, wrong in bounded(shown):
        if name not in used or name.startswith("kernel."):
            continue
        sent = posted_of(shown)
        sent[name] = str(wrong)
        form = made(kind, campaign, sent)
        assert not form.is_valid()
        assert form[name].errors, (name, wrong, form.error_list)
        tried += 1
    assert tried >= (10 if kind is SetupForm else 7)


ROLE = {"text": "What are you?", "name": "role", "kind": "choice", "options": "student\r\nother", "is_required": "on"}
AGE = {
    "text": "How old are you?",
    "name": "age",
    "kind": "number",
    "is_required": "on",
    "eligible_from": "18",
    "eligible_to": "65",
}
PAIR = {"first": " A dark night. ", "second": "A bright\r\nday.", "answer": "first", "question": "1"}
EXPLAINED = PAIR | {"if_wrong": "Night is darker."}
SCALE = {"text": "How are you?", "name": "mood", "kind": "scale", "least": "1", "most": "3", "is_required": "on"}
CHECK = {"text": "What do you read?", "options": "one\r\nboth", "right": "both"}
TEXTS = {"instructions": "Read *both*.", "tries": "3", "debriefing": "Thanks", "check_share": "10", "gold_share": "0"}
TEXTS |= {"checks_may_fail": "2", "checks_end": "on", "repeat_share": "0"}
TEXTS |= {"wait_minutes": "10"}


@pytest.fixture
def draft(researcher):
    found = make_draft(researcher)
    set_study(found, {"recruiter": "prolific"}, ())
    return found


def path_of(campaign) -> str:
    return reverse("console:protocol", args=[campaign.pk])


def posted(questions=(), comprehension=(), practice=(), gold=(), **texts) -> dict[str, str]:
    """Return what a browser sends: each row by its number."""
    fields = TEXTS | texts
    rows_of = {"questions": questions, "comprehension": comprehension, "practice": practice, "gold": gold}
    for name, rows in rows_of.items():
        fields |= {f"{name}.{number}.{key}": value for number, row in enumerate(rows) for key, value in row.items()}
    return fields


def save(owner, campaign, **rows) -> str:
    return owner.post(path_of(campaign), posted(**rows), follow=True).content.decode()


def stored() -> Protocol:
    return Campaign.objects.get().config.study.protocol


def test_a_row_that_is_emptied_is_taken_out(owner, draft):
    save(owner, draft, questions=[ROLE, AGE])
    rows = posted(questions=[dict.fromkeys(ROLE, "") | {"kind": "choice"}, AGE])
    assert "Saved." in owner.post(path_of(draft), rows, follow=True).content.decode()
    assert [question.name for question in stored().questions] == ["age"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"questions": [ROLE | {"name": "My role"}]}, "String should match pattern"),
        ({"questions": [ROLE | {"options": "student"}]}, "at least two different options"),
        ({"questions": [ROLE | {"eligible": "teacher"}]}, "“teacher” is not an option"),
        ({"questions": [ROLE | {"quota": "teacher: 3"}]}, "“teacher” is not an option"),
        ({"questions": [ROLE | {"quota": "student: 3\r\nstudent: 4"}]}, "“student” stands there twice"),
        ({"questions": [ROLE | {"eligible": "student", "is_required": ""}]}, "must be required"),
        ({"questions": [ROLE | {"eligible": "student", "is_last": "on"}]}, "Ask this question before them"),
        ({"questions": [AGE | {"eligible_from": "adult"}]}, "Enter a whole number"),
        ({"questions": [AGE | {"eligible_from": "9" * 4400}]}, "Enter a whole number"),
        ({"questions": [AGE | {"eligible_from": "66"}]}, "the range ends before it begins"),
        ({"questions": [ROLE | {"quota": "student: " + "9" * 4400}]}, "is not a name and a number"),
        ({"questions": [AGE | {"least": "9", "most": "3"}]}, "greater than the greatest"),
        ({"questions": [AGE | {"kind": "scale", "eligible_from": "", "eligible_to": ""}]}, "first and the last point"),
        ({"questions": [SCALE | {"options": "bad"}]}, "two lines, or none"),
        ({"questions": [ROLE, ROLE]}, "Two questions have the name “role”"),
        ({"comprehension": [CHECK | {"right": "none"}]}, "must be one of the options"),
        ({"instructions": "x" * 300_001}, "at most 300000 characters"),
        ({"practice": [EXPLAINED | {"second": "A dark night."}]}, "The two objects are the same"),
        ({"gold": [PAIR]}, "Gold pairs need to be shown at a rate above 0"),
        ({"gold_share": "5"}, "Gold pairs need to be shown at a rate above 0"),
        ({"gold": [PAIR], "gold_share": "45"}, "at most 50 can be followed"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_and_nothing_is_saved(owner, draft, rows, message):
    page = save(owner, draft, **rows)
    assert message in page
    assert "Saved." not in page
    assert stored().is_empty


def test_as_many_rows_as_there_may_be_are_saved(owner, draft):
    pairs = [{"first": f"Dark {n}.", "second": f"Bright {n}.", "answer": "first"} for n in range(100)]
    full = {
        "questions": [
            {"name": f"q{n}", "text": "Q?", "options": ["yes", "no"], "quota": {"yes": 9}} for n in range(40)
        ],
        "practice": [pair | {"if_wrong": "Night."} for pair in pairs[:40]],
        "comprehension": [CHECK | {"options": ["one", "both"], "text": f"Q {n}?"} for n in range(40)],
        "gold": pairs,
        "gold_share": 0.1,
    }
    set_study(draft, {"recruiter": "prolific", "protocol": full}, ())
    before = stored()
    assert [len(getattr(before, name)) for name in ("questions", "practice", "comprehension", "gold")] == [
        40,
        40,
        40,
        100,
    ]
    sent = as_shown(owner, path_of(draft)) | {"debriefing": "Thanks."}
    assert "Saved." in owner.post(path_of(draft), sent, follow=True).content.decode()
    assert stored() == before.model_copy(update={"debriefing": "Thanks."})


def test_what_a_form_would_make_wrong_on_another_page_is_refused(owner, draft):
    set_study(draft, {"recruiter": "anybody"}, ())
    assert "The protocol asks things of each person." in save(owner, draft, questions=[ROLE])
    assert stored().is_empty


def test_answers_are_downloaded_by_the_numbers_of_the_record(owner, researcher):
    study = recruited_campaign(researcher, protocol=WHOLE)
    browser = arrive(study, prolific("anna"))
    go_on(browser, study, ABOUT | {"answer-mood": "3"}, READ, UNDERSTOOD)
    answer = owner.get(reverse("console:answers", args=[study.pk]))
    assert "answers.csv" in answer["Content-Disposition"]
    text = content_of(answer).decode()
    assert text.startswith("\ufeffvoter,question,answer,answered_at")
    assert ",mood,3," in text
    assert "anna" not in text


IMAGES = archive({f"{colour}.png": picture(colour) for colour in ("red", "blue", "green", "grey")})
IN_SPACE = "The red house stood there."


def test_an_object_on_which_people_vote_is_warned_about_on_practice_and_gold_pairs(owner, draft):
    save(owner, draft, practice=[EXPLAINED | {"second": IN_SPACE}])
    page = owner.get(path_of(draft)).content.decode()
    assert f"are objects of the campaign, too: “{IN_SPACE}”." in page
    assert "cannot tell" not in page


def test_pairs_of_molecules_are_read_as_smiles_and_images_have_none(owner, researcher):
    for kind, file, name in (("molecules", MOLECULES, "m.csv"), ("images", IMAGES, "i.zip")):
        space = {"kind": "catalog", "objects": kind, "neighbours": 2}
        draft = make_draft(researcher, file=file, filename=name, config=make_config(space=space))
        set_study(draft, {"recruiter": "prolific"}, ())
        page = save(owner, draft, gold=[PAIR | {"first": "OCC", "second": "CCCC"}], gold_share="5")
        protocol = Campaign.objects.get(pk=draft.pk).config.study.protocol
        if kind == "images":
            assert not protocol.own_pairs
            assert "this campaign can have neither" in page
        else:
            assert protocol.gold[0].first == "CCO"
            assert "is not a SMILES" in save(owner, draft, gold=[PAIR], gold_share="5")
            assert "“CCO”" in owner.get(path_of(draft)).content.decode()


FIELDS = {
    "space.kind": "model-images",
    "space.model-images.model": "turbo",
    "space.model-images.prompt": "a red mushroom",
    "space.model-images.steps": "2",
}


@pytest.fixture
def offered(settings, tmp_path):
    """A site whose model's folder lies on the accelerator's machine only."""
    settings.LOCAL_IMAGE_MODELS = {"turbo": tmp_path / "turbo"}
    return tmp_path / "turbo"


def test_only_a_site_with_image_models_offers_them(signed_in, idle_tasks):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert "diffusion model" not in page
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    assert "is not one of the available choices" in answer.content.decode()
    assert not Campaign.objects.exists()


def test_the_form_makes_a_draft_that_edits_to_the_same(signed_in, idle_tasks, offered):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert "Images from a diffusion model" in page
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    campaign = Campaign.objects.get()
    assert answer.url == campaign.get_absolute_url()
    assert campaign.config_data["space"] == {
        "kind": "model-images", "model": "turbo", "prompt": "a red mushroom", "steps": 2, "dimension": 16_384,
    }  # fmt: skip
    assert campaign.config_data["kernel"] == sampler.parse_config(make_config(
        space=campaign.config_data["space"], kernel=sampler.PAPER_MIXTURE
    )).model_dump(mode="json")["kernel"]  # fmt: skip
    page = signed_in.get(answer.url).content.decode()
    assert "Images from a diffusion model; Model: turbo; Prompt: a red mushroom; Sampling steps: 2" in page
    config = campaign.config_data
    signed_in.post(edit := reverse("console:edit", args=[campaign.pk]), as_shown(signed_in, edit))
    campaign.refresh_from_db()
    assert campaign.config_data == config


def test_a_model_that_cannot_be_read_is_told_and_nothing_is_saved(signed_in, idle_tasks, offered):
    pipeline_folder(offered)
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    assert answer.status_code == 200
    assert "turbo must be a pipeline of diffusers" in answer.content.decode()
    assert not Campaign.objects.exists()


@without_the_extra
def test_a_worker_without_the_extra_says_on_the_page_what_to_install(signed_in, idle_tasks, offered):
    signed_in.post(reverse("console:create"), form(**FIELDS))
    campaign = Campaign.objects.get()
    signed_in.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    assert campaign.is_draft
    assert "There are no pictures to start with: turbo makes no pictures here" in campaign.start_trouble
    assert "the extra [gpu] brings" in signed_in.get(campaign.get_absolute_url()).content.decode()
    assert not State.objects.exists()


def painted_elsewhere(campaign: Campaign, seen: list[bytes]) -> None:
    """Start a draft as a worker on another machine does, with pictures of one colour for each state."""

    def paint(state):
        colour = np.full((16, 16, 3), 40 * (1 + len(seen)), dtype=np.uint8)
        seen.append(sampler.png(colour))
        media.store(media.rendered_name(campaign.pk, plan.space.encode(state)), seen[-1])

    plan = plan_of(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.RUNNING, started_at=timezone.now())
    campaign.refresh_from_db()
    Judge.objects.create(campaign=campaign, index=0, question="Which is rounder?", max_votes=1)
    Invitation.objects.create(campaign=campaign)
    [position] = sampler.begin_many(plan, [0])
    paint(position.state)
    start = objects.starting(campaign, 0, position.state)
    start.save()
    chain = Chain.objects.create(campaign=campaign, index=0, length=5, start=start, head=start)
    drawn = sampler.ask(plan, position)
    paint(drawn.proposal)
    transitions.open_comparison(chain.pk, drawn, objects.proposed(chain, drawn))


@without_the_extra
def test_pages_show_what_was_painted_elsewhere(signed_in, researcher, idle_tasks, offered):
    space = {"kind": "model-images", "model": "turbo", "prompt": "a red mushroom"}
    judges = [{"question": "Which is rounder?", "votes": 1}]
    config = make_config(space=space, kernel=sampler.PAPER_MIXTURE, judges=judges, chains=1, steps=5)
    campaign, painted = create_draft(owner=researcher, config=config), []
    painted_elsewhere(campaign, painted)
    idle_tasks()
    assert "contrast 0.00" in signed_in.get(campaign.get_absolute_url()).content.decode()
    for state, data in zip(campaign.states.order_by("index"), painted, strict=True):
        address = reverse("console:picture", args=[state.pk])
        assert signed_in.get(address).content == data
        assert signed_in.get(address, {"small": ""})["Content-Type"] == "image/webp"
        assert state.campaign.object_kind.measures(objects.stored(state))["contrast"] == pytest.approx(0)
    invitation = campaign.invitations.get()
    signed_in.post(invitation.get_absolute_url())
    assert signed_in.get(reverse("voting:vote", args=[invitation.token])).status_code == 200
    lease = Lease.objects.get()
    shown = {signed_in.get(reverse("voting:picture", args=[lease.key, side])).content for side in ("first", "second")}
    assert shown == set(painted)
