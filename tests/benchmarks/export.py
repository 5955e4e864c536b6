"""What an export takes of time and memory as the record grows.

    python -m tests.benchmarks.export [--votes 10000,100000,1000000] [--engine postgresql|sqlite] [--budget 3]
        [--runs 1] [--json FILE]

For each number of votes a record is written into an empty database; `--budget` votes make a step. A process of its own
then exports it as the download does, and throws the archive away.

    processor    user and system seconds of the exporting process; PostgreSQL's own are not among them
    wall         seconds from the first call to the last byte
    first        seconds to the first bytes of the first table
    memory       the most that the process ever held (resident) beyond what it held with all libraries loaded, MiB
    size         of the archive, MiB
    stored       of the database that holds the record, with its indexes, beyond the empty one, MiB

Of several runs each figure is the least. The exponent is the slope of log seconds on log votes by least squares: 1 is
an export whose time grows as the record does.
"""

import argparse
import contextlib
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.servers import Postgres

MIB = 2**20
Figures = dict[str, Any]
_COLUMNS = ("processor", "wall", "first", "memory", "size", "stored")
_ARCHIVE_HEAD = 4096


@contextlib.contextmanager
def empty_database(engine: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a process whose record is a new one."""
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="prefmh-export-"))
        own = {"PREFMH_DATA": folder, "SECRET_KEY": "x" * 60, "LOG_LEVEL": "ERROR"}
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        environment = kept | own | {"DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}
        if engine == "postgresql":
            postgres = Postgres()
            ends.callback(postgres.remove)
            postgres.start()
            # Nothing is sent to Redis: an export neither changes nor announces anything.
            environment |= {"DATABASE_URL": postgres.create("record"), "REDIS_URL": "redis://127.0.0.1:1/0"}
            environment["SITE_URL"] = "http://export.example"
        yield environment


def in_own_process(environment: dict[str, str], work: Callable[..., Figures], *arguments: int) -> Figures:
    """Return what a part of this benchmark finds in a new process of this environment."""
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, [environment]) as process:
        return process.submit(work, *arguments).result()


def _begin(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    import django

    django.setup()


def fill(votes: int, budget: int) -> Figures:
    """Make the tables and write a record into them."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from tests.benchmarks.export_record import make_record

    empty = stored_mib()
    return {"campaign": make_record(votes, budget).pk, "stored": stored_mib() - empty}


def stored_mib() -> float:
    """Return the size of the whole database."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        [size] = cursor.fetchone()
    return size / MIB


def measure(campaign_id: int) -> Figures:
    """Export a campaign and say what that took."""
    from prefmh_web.campaigns.models import Campaign
    from prefmh_web.campaigns.record import export

    campaign = Campaign.objects.get(pk=campaign_id)
    # What the libraries take is no export's; reading the config loads the last of them.
    assert campaign.config
    before, wall, processor = peak_mib(), time.perf_counter(), time.process_time()
    size, first = 0, 0.0
    for chunk in export.archive(campaign):
        size += len(chunk)
        if not first and size > _ARCHIVE_HEAD:
            first = time.perf_counter() - wall
    return {
        "processor": time.process_time() - processor,
        "wall": time.perf_counter() - wall,
        "first": first,
        "memory": peak_mib() - before,
        "size": size / MIB,
    }


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def least(runs: list[Figures]) -> Figures:
    """Return the least of each figure."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def exponent(points: list[Figures], name: str) -> float:
    """Return the slope of log seconds on log votes by least squares."""
    votes, seconds = ([point[key] for point in points] for key in ("votes", name))
    return float(np.polyfit(np.log(votes), np.log(seconds), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", default="10000,100000,1000000", help="numbers, separated by commas")
    parser.add_argument("--engine", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--budget", type=int, default=3, help="votes to a step")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    points = []
    print(
        f"{options.engine}, {options.budget} votes to a step\n{'votes':>10}"
        + "".join(f"{name:>11}" for name in _COLUMNS)
    )
    for votes in map(int, options.votes.split(",")):
        with empty_database(options.engine) as environment:
            made = in_own_process(environment, fill, votes, options.budget)
            runs = [in_own_process(environment, measure, made["campaign"]) for _ in range(options.runs)]
        points.append({"votes": votes, **least(runs), "stored": made["stored"]})
        print(f"{votes:>10,}" + "".join(f"{points[-1][name]:>11.2f}" for name in _COLUMNS), flush=True)
    found = {name: exponent(points, name) for name in ("processor", "wall")} if len(points) > 1 else {}
    for name, value in found.items():
        print(f"exponent of {name} seconds: {value:.3f}")
    if options.json:
        figures = {"engine": options.engine, "budget": options.budget, "points": points, "exponents": found}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
