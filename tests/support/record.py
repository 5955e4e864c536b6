"""What must hold of any campaign's record, whatever happened to it; and its replay from the export alone."""

import csv
import io
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from django.core.management import call_command

import sampler
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Vote
from prefmh_web.campaigns.record import export
from sampler.record.replay_file import replay_record

IN_EVERY_ARCHIVE = {
    "recipe.json",
    "judges.json",
    "campaign.yaml",
    *export.TABLES,
    "preferences.jsonl",
    "events.csv",
    "codebook.csv",
    "manifest.json",
}
"""Of a campaign whose votes decide."""


def assert_record_is_whole(campaign: Campaign) -> None:
    """Votes numbered without a gap and within budgets, steps without a gap, every chain where its steps lead."""
    for comparison in Comparison.objects.filter(chain__campaign=campaign):
        counted = list(comparison.votes.filter(number__isnull=False).select_related("judge"))
        assert sorted(vote.number for vote in counted) == list(range(1, len(counted) + 1)), comparison
        spent = Counter(vote.judge for vote in counted)
        assert all(votes <= judge.budget for judge, votes in spent.items()), comparison
    for chain in campaign.chains.all():
        decided = chain.comparisons.filter(verdict__isnull=False)
        assert sorted(decided.values_list("step", flat=True)) == list(range(1, chain.step + 1))
        last = decided.order_by("-step").first()
        if last:
            moved = last.verdict == Comparison.Verdict.ACCEPT
            assert chain.head_id == (last.proposal_id if moved else last.current_id)
        else:
            assert chain.head_id == chain.start_id
    voted = Lease.objects.filter(comparison__chain__campaign=campaign, ending=Lease.Ending.VOTED)
    assert set(voted.values_list("key", flat=True)) <= set(
        Vote.objects.filter(judge__campaign=campaign).values_list("key", flat=True)
    )


def export_to(campaign: Campaign, folder: Path) -> Path:
    """Write the campaign's export and return its path."""
    path = folder / "export.zip"
    path.write_bytes(b"".join(export.archive(campaign)))
    return path


def everything_in(path: Path) -> str:
    """Return the content of all files of an export, one after the other."""
    with zipfile.ZipFile(path) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def assert_replay_passes(path: Path) -> str:
    """Replay an export as a stranger would, and that of a running campaign also with its seed; return what was
    printed.
    """
    out = io.StringIO()
    call_command("replay", str(path), stdout=out)
    assert "all agree" in out.getvalue()
    record = sampler.read_record(path)
    if "seed" not in record.recipe:
        assert replay_record(opened(record)).differences == ()
    return out.getvalue()


def opened(record: sampler.Record) -> sampler.Record:
    """Return the record of a running campaign with the seed, which it does not tell yet."""
    sealed = Campaign.objects.get(seed_hash=record.recipe["seed_hash"])
    told = {"seed": sealed.recipe["seed"], "seed_salt": sealed.seed_salt}
    return replace(record, recipe=record.recipe | told)


def table(path: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of one CSV file of an export."""
    with zipfile.ZipFile(path) as archive:
        return list(csv.DictReader(io.StringIO(archive.read(name).decode(), newline="")))
