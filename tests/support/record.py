"""What must hold of any campaign's record, whatever happened to it; and its replay from the export alone."""

import csv
import io
import zipfile
from collections import Counter
from pathlib import Path

from django.core.management import call_command

from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns import export
from prefmh_web.campaigns.models import Campaign, Comparison, Vote


def assert_record_is_whole(campaign: Campaign) -> None:
    """Nothing counted twice, nothing decided twice, no vote too late, every chain where its steps lead."""
    comparisons = list(Comparison.objects.filter(chain__campaign=campaign).select_related("chain"))
    assert max(Counter((c.chain_id, c.step) for c in comparisons).values(), default=1) == 1
    for comparison in comparisons:
        numbers = sorted(comparison.votes.filter(number__isnull=False).values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1)), comparison
    for chain in campaign.chains.all():
        decided = chain.comparisons.filter(verdict__isnull=False)
        assert chain.step == decided.count()
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


def assert_replay_passes(path: Path) -> str:
    """Replay an export as a stranger would; return what was printed."""
    out = io.StringIO()
    call_command("replay", str(path), stdout=out)
    assert "all agree" in out.getvalue()
    return out.getvalue()


def table(path: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of one CSV file of an export."""
    with zipfile.ZipFile(path) as archive:
        return list(csv.DictReader(io.StringIO(archive.read(name).decode(), newline="")))
