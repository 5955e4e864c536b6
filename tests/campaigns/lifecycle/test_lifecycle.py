"""Draft, running, paused, finished."""

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse

import sampler
from prefmh_web.campaigns import catalogs, lifecycle, tasks
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Annotator, Campaign, Catalog, Comparison, Side, State
from tests.support.campaigns import (
    OF_PICTURES,
    PICTURES,
    assert_replay_passes,
    create_draft,
    export_to,
    make_config,
    make_draft,
    table,
    whole_config,
)


def test_starting_freezes_the_setup(campaign):
    with pytest.raises(lifecycle.NotPossible, match="cannot change after the start"):
        changes.apply(campaign, campaign.typed_config.model_copy(update={"seed": 1}))
    with pytest.raises(lifecycle.NotPossible, match="running"):
        lifecycle.start(campaign)
    assert campaign.chains.count() == 3
    assert Campaign.objects.get().seed == make_config()["seed"]


def test_a_paused_campaign_resumes_its_steps_under_the_same_uniform(campaign, idle_tasks):
    before = set(Comparison.objects.values_list("chain", "step", "uniform"))
    lifecycle.pause(campaign)
    assert Campaign.objects.get().status == "paused"
    lost = Comparison.objects.filter(verdict__isnull=True).first()
    chain_id = lost.chain_id
    lost.delete()
    # Neither a hint that comes late nor the sweep opens a step of a paused campaign.
    tasks.propose(chain_id)
    tasks.sweep()
    idle_tasks()
    assert not Comparison.objects.filter(chain=chain_id, verdict__isnull=True).exists()
    lifecycle.resume(campaign)
    idle_tasks()
    assert set(Comparison.objects.values_list("chain", "step", "uniform")) == before


def test_a_file_that_gives_no_catalog_cannot_be_started_and_can_be_replaced(researcher, idle_tasks):
    draft = make_draft(researcher, file="title\nHello\n")
    assert draft.catalog.status == Catalog.Status.REFUSED
    assert "“text”" in draft.catalog.error
    with pytest.raises(lifecycle.NotPossible, match="gave no objects"):
        lifecycle.start(draft)
    assert Campaign.objects.get().status == "draft"
    assert not draft.judges.exists()
    changes.apply(draft, draft.typed_config, file=ContentFile(b"text\nHello\nWorld\nThird one\nFourth\n", "good.csv"))
    idle_tasks()
    assert State.objects.filter(campaign=draft).count() == 4
    lifecycle.start(Campaign.objects.get())
    assert Campaign.objects.get().is_running


def test_a_reading_overtaken_by_a_newer_file_writes_nothing(researcher, idle_tasks):
    draft = make_draft(researcher)
    stale = Catalog.objects.get()
    catalogs.read_again(draft.catalog)
    idle_tasks()
    count = State.objects.count()
    catalogs.read(stale.pk, stale.revision)
    assert State.objects.count() == count
    assert Catalog.objects.get().status == Catalog.Status.READY


def test_a_file_whose_reading_keeps_failing_is_refused_in_the_end(researcher, idle_tasks, monkeypatch, caplog):
    def fail(items, count):
        raise ZeroDivisionError("no room")

    monkeypatch.setattr(sampler.OBJECT_KINDS["texts"], "neighbours", fail)
    make_draft(researcher)
    for _ in range(4):
        tasks.sweep()
        idle_tasks()
    catalog = Catalog.objects.get()
    assert (catalog.status, catalog.attempts) == (Catalog.Status.REFUSED, 2)
    assert "failed 2 times" in catalog.error
    assert caplog.text.count("ZeroDivisionError: no room") == 2


def test_files_that_no_row_names_are_removed(researcher, idle_tasks, data_folder):
    draft = make_draft(researcher, file=PICTURES, filename="p.zip", config=make_config(space=OF_PICTURES))
    for neighbours in (1, 3):
        changes.apply(
            draft, whole_config(make_config(space=OF_PICTURES | {"neighbours": neighbours}), filename="p.zip")
        )
        idle_tasks()
    changes.apply(draft, draft.typed_config, file=ContentFile(PICTURES, "q.zip"))
    idle_tasks()
    assert len(list(data_folder.glob("media/pictures/*/*/*.png"))) == draft.states.count() == 4
    assert len(list(data_folder.glob("media/uploads/*"))) == 1
    lifecycle.discard(draft)
    assert not [path for path in data_folder.glob("media/**/*") if path.is_file()]


def test_a_draft_deleted_while_its_file_is_read_leaves_nothing(
    researcher, idle_tasks, data_folder, monkeypatch, caplog
):
    kind = sampler.OBJECT_KINDS["images"]
    link = kind.neighbours

    def delete_the_draft_and_link(items, count):
        lifecycle.discard(Campaign.objects.get())
        return link(items, count)

    monkeypatch.setattr(kind, "neighbours", delete_the_draft_and_link)
    config = make_config(space=OF_PICTURES)
    create_draft(owner=researcher, name="Gone", config=config, file=ContentFile(PICTURES, "p.zip"), filename="p.zip")
    idle_tasks()
    assert not State.objects.exists()
    assert not [path for path in data_folder.glob("media/**/*") if path.is_file()]
    assert "Traceback" not in caplog.text


def test_a_campaign_is_finished_before_its_last_step_and_its_record_replays(campaign, signed_in, idle_tasks, tmp_path):
    lease = leases.take(Annotator.objects.create(campaign=campaign))
    lifecycle.finish_now(campaign)
    assert Campaign.objects.get().status == "finished"
    # A pair that was on a screen in that moment may still be answered, and nothing follows it.
    leases.answer(lease.key, lease.annotator, Side.FIRST, 900)
    tasks.sweep()
    idle_tasks()
    assert leases.take(lease.annotator) is None
    assert Comparison.objects.count() == 3
    path = export_to(campaign, tmp_path)
    assert "finished-now" in [row["kind"] for row in table(path, "events.csv")]
    assert_replay_passes(path)
    overview = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert overview.count("not decided") == Comparison.objects.filter(verdict__isnull=True).count() == 2
    for change in (lifecycle.resume, lifecycle.finish_now):
        with pytest.raises(lifecycle.NotPossible):
            change(campaign)


def test_a_researcher_finishes_on_the_page(signed_in, campaign):
    path = reverse("console:finish", args=[campaign.pk])
    assert "Finish now" in signed_in.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    signed_in.post(path)
    assert Campaign.objects.get().status == "finished"
