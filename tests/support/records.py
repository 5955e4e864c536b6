"""What must hold of any campaign's record, whatever happened to it; and its replay from the export alone."""

from __future__ import annotations

import copy
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

import sampler
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Vote
from prefmh_web.campaigns.record import export
from sampler import tables
from tests.support.sampling import files_of, rows_of

IN_EVERY_ARCHIVE = {
    "campaign.json",
    "judges.json",
    *export.TABLES,
    "preferences.jsonl",
    "results.csv",
    "properties.csv",
    "codebook.csv",
    "manifest.json",
}
"""Of a campaign whose votes decide."""


def assert_record_is_whole(campaign: Campaign) -> None:
    """Votes numbered without a gap and within max_votes, steps without a gap, every chain where its steps lead."""
    for comparison in Comparison.objects.filter(chain__campaign=campaign):
        counted = list(comparison.votes.filter(number__isnull=False).select_related("judge"))
        assert sorted(vote.number for vote in counted) == list(range(1, len(counted) + 1)), comparison
        spent = Counter(vote.judge for vote in counted)
        assert all(votes <= judge.max_votes for judge, votes in spent.items()), comparison
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
    return "".join(content.decode() for content in files_of(path).values())


def assert_replay_passes(path: Path) -> str:
    """Replay an export as a stranger would, and that of a running campaign also with its seed; return what was
    printed.
    """
    out = io.StringIO()
    call_command("replay", str(path), stdout=out)
    assert "all agree" in out.getvalue()
    record = sampler.read_record(path)
    if "seed" not in record.config:
        assert sampler.replay(opened(record)).differences == ()
    return out.getvalue()


def checked_export(campaign: Campaign, folder: Path, told: str = "") -> Path:
    """Look at a campaign's record, export it and replay the export, which has to tell this; return its path."""
    assert_record_is_whole(campaign)
    path = export_to(campaign, folder)
    assert told in assert_replay_passes(path)
    return path


def assert_texts_are_of_their_tokens(campaign: Campaign, path: Path) -> None:
    """Look whether each object of a model's campaign is what its tokens are written as, and each prompt is answered."""
    space, prompts = plan_of(campaign).space, set()
    for row in table(path, "states.csv"):
        writing = space.decode(row["code"])
        assert space.model.text(writing.prompt, writing.tokens) == writing.text == row["content"]
        prompts.add(writing.prompt)
    assert prompts == set(campaign.config.space.prompts)


def refused_by_replay(path: Path, found: str = "difference") -> str:
    """Replay an export in which something is wrong; return what was printed of it."""
    out = io.StringIO()
    with pytest.raises(CommandError, match=found):
        call_command("replay", str(path), stdout=out)
    return out.getvalue()


def differences(record: sampler.Record, tamper: Callable[[sampler.Record], object] = lambda _: None) -> list[str]:
    """Return what replay finds in a copy of a record once that was tampered with."""
    changed = copy.deepcopy(record)
    tamper(changed)
    return [str(each) for each in sampler.replay(changed).differences]


def opened(record: sampler.Record) -> sampler.Record:
    """Return the record of a running campaign with the seed, which it does not tell yet."""
    sealed = Campaign.objects.get(seed_hash=record.config["seed_hash"])
    told = {"seed": sealed.seed, "seed_salt": sealed.seed_salt}
    events = record["events"]
    revealed = dict.fromkeys(events[-1], "") | {"number": str(len(events) + 1), "kind": "seed-revealed", "data": "{}"}
    events = [*events, revealed | {"at": events[-1]["at"]}]
    return sampler.Record(record.documents | {tables.CONFIG: record.config | told}, record.tables).but(events=events)


def happened(path: Path, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of an export, or those of some kinds: each one's kind, and what it says and by whom."""
    rows = [row for row in table(path, "events.csv") if not kinds or row["kind"] in kinds]
    by = [{"by": row["by"]} if row["by"] else {} for row in rows]
    return [(row["kind"], json.loads(row["data"]) | who) for row, who in zip(rows, by, strict=True)]


def table(path: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of one CSV file of an export."""
    return rows_of(files_of(path), name)
