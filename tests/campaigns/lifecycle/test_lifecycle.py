"""Draft, running, paused, finished.

A deleted campaign leaves nothing, whatever dies meanwhile; an archived one is off the list, and all else stays.
"""

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

import sampler
from prefmh_web import tasks
from prefmh_web.campaigns import catalogs, lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes, status
from prefmh_web.campaigns.models import (
    Campaign,
    Catalog,
    Comparison,
    Deleted,
    Lease,
    NotPossible,
    Side,
    State,
    Vote,
    Voter,
)
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.rows import Snapshot
from prefmh_web.participants.models import Participant, Participation
from tests.support.campaigns import (
    OF_PICTURES,
    PICTURES,
    create_draft,
    invitation_path,
    make_config,
    make_draft,
    whole_config,
)
from tests.support.people import CODES_OF_ALL, arrive, pair_of, prolific, recruited_campaign, vote
from tests.support.records import assert_replay_passes, checked_export, export_to, table


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
    def fail(kind, items, count):
        raise ZeroDivisionError("no room")

    monkeypatch.setattr(type(sampler.OBJECT_KINDS["texts"]), "neighbours", fail)
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
    files = type(sampler.OBJECT_KINDS["images"])
    link = files.neighbours

    def delete_the_draft_and_link(kind, items, count):
        lifecycle.discard(Campaign.objects.get())
        return link(kind, items, count)

    monkeypatch.setattr(files, "neighbours", delete_the_draft_and_link)
    config = make_config(space=OF_PICTURES)
    create_draft(owner=researcher, name="Gone", config=config, file=ContentFile(PICTURES, "p.zip"), filename="p.zip")
    idle_tasks()
    assert not State.objects.exists()
    assert not [path for path in data_folder.glob("media/**/*") if path.is_file()]
    assert "Traceback" not in caplog.text


def test_a_campaign_is_finished_before_its_last_step_and_its_record_replays(campaign, signed_in, idle_tasks, tmp_path):
    lease = leases.take(Voter.objects.create(campaign=campaign))
    assert "Finish now" in signed_in.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    signed_in.post(reverse("console:finish", args=[campaign.pk]))
    campaign.refresh_from_db()
    assert campaign.status == "finished"
    # A pair that was on a screen in that moment may still be answered, and nothing follows it.
    leases.answer(lease.key, lease.voter, Side.FIRST, 900)
    tasks.sweep()
    idle_tasks()
    assert leases.take(lease.voter) is None
    assert Comparison.objects.count() == 3
    path = export_to(campaign, tmp_path)
    assert "finished-now" in [row["kind"] for row in table(path, "events.csv")]
    assert_replay_passes(path)
    overview = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert overview.count("not decided") == Comparison.objects.filter(verdict__isnull=True).count() == 2
    for change in (lifecycle.resume, lifecycle.finish_now):
        with pytest.raises(lifecycle.NotPossible):
            change(campaign)


OWN = ("campaigns", "participants", "experiments")


def rows() -> dict[str, int]:
    """Return how many rows each table of campaigns and people has, where it has any."""
    models = [model for name in OWN for model in apps.get_app_config(name).get_models()]
    return {model._meta.label: count for model in models if (count := model._default_manager.count())}


@pytest.fixture
def study(researcher, idle_tasks) -> Campaign:
    """A paid study with pictures, consent, checks, votes, a skip and two people."""
    config = make_config(space=OF_PICTURES, judges=[{"question": "Which?", "votes": 2}])
    options = {"consent": "# Consent", "codes": CODES_OF_ALL, "protocol": {"check_share": 0.5}}
    return recruited_campaign(researcher, file=PICTURES, filename="p.zip", config=config, **options)


def paused(campaign: Campaign) -> Campaign:
    lifecycle.pause(campaign)
    return campaign


def test_nothing_of_a_deleted_campaign_is_left_and_another_stays_whole(study, researcher, data_folder, tmp_path):
    other = recruited_campaign(researcher, name="Another")
    both = arrive(other, prolific("anna"))
    vote(both, other)
    before = rows()
    arrive_and_vote(study, "anna")
    arrive_and_vote(study, "ben")
    assert {"campaigns.Vote", "participants.AttentionCheck", "participants.Participation"} <= set(rows())
    assert list(data_folder.glob("media/pictures/*/*/*.png"))
    status.request_deletion(paused(study), study.name)
    finish_deleting(study)
    left = rows()
    assert left.pop("participants.Participant") == 1
    assert before.pop("participants.Participant") == 1
    assert Participant.objects.get().external_id == "anna"
    assert not Campaign.objects.filter(pk=study.pk).exists()
    # The study's draft, its chains and its catalog are in `before` too, as it had been started.
    assert set(left) <= set(before)
    assert not list(data_folder.glob(f"media/pictures/{study.pk}/*/*"))
    vote(both, other)
    checked_export(other, tmp_path)
    status.request_deletion(paused(other), "Another")
    finish_deleting(other)
    assert rows() == {}
    assert not [path for path in data_folder.glob("media/**/*") if path.is_file()]


def arrive_and_vote(study: Campaign, name: str) -> None:
    browser = Client()
    path = invitation_path(study)
    page = browser.get(path, prolific(name), follow=True)
    browser.post(path, {"consent": "agree", "version": page.context["version"]})
    assert Participation.objects.filter(campaign=study, participant__external_id=name).exists()
    while pair_of(browser, study):
        vote(browser, study)


def joined(campaign: Campaign) -> Client:
    browser = Client()
    browser.post(invitation_path(campaign))
    return browser


def finish_deleting(campaign: Campaign) -> None:
    tasks.sweep()
    status.finish_deletion(campaign.pk)


def test_what_died_in_the_middle_is_finished_by_the_sweep(campaign, idle_tasks):
    browser = joined(campaign)
    vote(browser, campaign, 3)
    paused(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.DELETING)
    # As far as whoever has died had come.
    Lease.objects.all().delete()
    Vote.objects.first().delete()
    tasks.sweep()
    idle_tasks()
    assert rows() == {}


def test_a_large_campaign_is_deleted_piece_by_piece_with_room_for_other_work_between(campaign, monkeypatch):
    vote(joined(campaign), campaign, 3)
    status.request_deletion(paused(campaign), campaign.name)
    monkeypatch.setattr(status, "_SECONDS", 0)
    left = [sum(rows().values())]
    while left[-1]:
        status.finish_deletion(campaign.pk)
        left.append(sum(rows().values()))
    assert len(left) > 4
    assert left == sorted(set(left), reverse=True)


def test_a_download_of_a_campaign_that_is_deleted_meanwhile_does_not_end(campaign, tmp_path):
    download = export.archive(paused(campaign))
    votes = export.as_csv(export.TABLES["votes.csv"](Snapshot.now(campaign)))
    csv = export.whole(campaign.pk, votes)
    path = tmp_path / "export.zip"
    path.write_bytes(next(download))
    status.request_deletion(campaign, campaign.name)
    with path.open("ab") as file, pytest.raises(Deleted):
        file.writelines(download)
    with pytest.raises(sampler.RecordError):
        sampler.replay_file(path)
    with pytest.raises(Deleted):
        list(csv)


def test_nobody_finds_a_campaign_that_is_being_deleted_and_no_vote_brings_it_back(campaign, client, researcher):
    browser = joined(campaign)
    key = pair_of(browser, campaign)
    path = invitation_path(campaign)
    paused(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.DELETING)
    client.force_login(researcher)
    assert client.get(campaign.get_absolute_url()).status_code == 404
    assert campaign.name not in client.get("/").content.decode()
    browser.post(f"{path}vote/", {"choice": "first", "lease": str(key)})
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.DELETING
    with pytest.raises(Deleted):
        changes.extend(campaign, 1)
    with pytest.raises(Deleted):
        status.request_deletion(campaign, campaign.name)
    with pytest.raises(NotPossible):
        lifecycle.resume(campaign)


def test_what_runs_has_not_started_or_has_another_name_is_not_deleted(campaign, researcher):
    with pytest.raises(NotPossible, match="Pause it first"):
        status.request_deletion(campaign, campaign.name)
    with pytest.raises(NotPossible, match="has not started"):
        status.request_deletion(make_draft(researcher), "Twelve texts")
    with pytest.raises(NotPossible, match="not the campaign's name"):
        status.request_deletion(paused(campaign), "Twelve")
    assert Campaign.objects.get(pk=campaign.pk).status == Campaign.Status.PAUSED


def test_the_owner_archives_and_deletes_on_the_page(campaign, client, researcher, idle_tasks):
    path = campaign.get_absolute_url()
    client.force_login(researcher)
    assert "Pause it before" in client.post(f"{path}archive/", follow=True).content.decode()
    paused(campaign)
    client.post(f"{path}archive/")
    assert campaign.name not in client.get("/").content.decode()
    assert campaign.name in client.get("/?archived").content.decode()
    assert "Put it back on the list" in client.get(f"{path}setup/").content.decode()
    client.post(f"{path}unarchive/")
    assert campaign.name in client.get("/").content.decode()
    assert "Nothing was deleted" in client.post(f"{path}delete/confirmed/", {"name": "?"}, follow=True).content.decode()
    assert Campaign.objects.exists()
    told = client.post(f"{path}delete/confirmed/", {"name": campaign.name}, follow=True).content.decode()
    assert "is being deleted" in told
    idle_tasks()
    assert rows() == {}
