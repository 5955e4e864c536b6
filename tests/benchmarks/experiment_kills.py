"""An experiment of the paper at `--scale laptop`, whole, killed at random moments while requests are in flight.

    python -m tests.benchmarks.experiment_kills stories|images|molecules|translation [--kills 5] [--json FILE]

Real parts: texts are written, and texts and molecules judged, by llama.cpp's server on a model of random weights;
pictures come from an SDXL pipeline of random weights on the CPU, and MARS's proposals from PyTorch (`.ci/gpu` says how
to install both; without them `--plain` takes the decoder of patterns, and leaves MARS out). The model sees no pictures,
so a scripted server judges these by their pixels. Scorers are stand-ins.

Whoever is killed has requests in flight: the gate before the server counts them, and answers nobody until the process
is dead. What it had claimed stays for a minute, which the next command waits for; `--hurry` takes the minute out of the
database. At the end records are replayed, answers counted, tables and figures looked for, and the command is run once
more, which must ask nothing. Exits with 1 where any of this is not so.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import sampler
from tests.support.experiment_sites import ROLES, Site
from tests.support.forwarding import forwarded
from tests.support.killed_runs import Gate, KilledRun, Moment
from tests.support.model_server import model_server, write_model
from tests.support.ports import port_from
from tests.support.scorer_programs import declared
from tests.support.scripted_server import scripted_server
from tests.support.seeing_server import sees

_ROLES: Mapping[str, Mapping[str, str]] = {
    "stories": {role: role for role in ROLES},
    "images": {"writer": "tiny", "judge": "judge", "detector": "detector"},
    "molecules": {"judge": "judge"},
    "translation": {"writer": "writer", "judge": "judge"},
}
# What is planned is an upper bound: early stopping saves votes, and what is left must suffice for the last kill.
_SHARE_MADE = 0.5


@contextmanager
def models(name: str, folder: Path, gate: Gate) -> Iterator[tuple[str, str]]:
    """Serve the models behind the gate; yield their URL and dialect."""
    if name == "images":
        with scripted_server(gate.before(sees)) as script:
            yield script.url, "vllm"
        return
    with model_server(write_model(folder / "tiny.gguf"), port_from(23_200)) as url, forwarded(url, gate) as front:
        yield front, "llama.cpp"


def site_of(name: str, folder: Path, server: tuple[str, str], *, plain: bool) -> tuple[Site, dict[str, Path]]:
    """Return a site with all endpoints and scorers of an experiment, and the files in which scorers' lines stand."""
    programs = declared(folder, sampler.EXPERIMENTS[name].scorers)
    roles, also = dict(_ROLES[name]), dict(programs.environment)
    options = [name, "--scale", "laptop", *(f"--scorer={role}={role}" for role in programs.told)]
    if name == "images" and plain:
        roles["writer"] = "patterns"
    elif name == "images":
        from tests.gpu.small_pipeline import pipeline

        pipeline().save_pretrained(folder / "model")
        also |= {"LOCAL_IMAGE_MODELS": f"tiny={folder / 'model'}", "LOCAL_DEVICE": "cpu"}
    if name == "molecules" and plain:
        options.append("--methods=mars-plain,pointwise,pref")
    return Site.made(folder, *server, options, roles=roles, also=also), programs.told


def planned_requests(site: Site) -> int:
    """Return about how many requests a run makes."""
    sums = json.loads(site.run("--dry-run", "--json").stdout)
    written = sums["proposals"]["all"] if "writer" in site.roles and site.roles["writer"] == "writer" else 0
    return int(_SHARE_MADE * sums["judge_requests"]["all"]) + sums["evaluation_requests"]["all"] + 2 * written


def measured(name: str, folder: Path, *, kills: int, seed: int, plain: bool, hurry: bool) -> dict[str, object]:
    """Run an experiment, kill it so often, and return what came of it."""
    gate, rng = Gate(name), np.random.default_rng(seed)
    began = time.monotonic()
    with models(name, folder, gate) as server:
        site, told = site_of(name, folder, server, plain=plain)
        run = KilledRun(site, gate, told, takes_claims_away=hurry)
        planned = planned_requests(site)
        for left in range(kills, 0, -1):
            made = gate.seen.total() - gate.seen["other"]
            run.kill_at(Moment(None, 1, max(1, (planned - made) // (left + 1))), rng)
            print(f"killed with {run.killed[-1]} in flight after {time.monotonic() - began:.0f} s", flush=True)
        run.end()
    seconds = time.monotonic() - began
    run.assert_whole()
    run.assert_counted()
    return {
        "experiment": name,
        "seconds": round(seconds),
        "in_flight_at_kills": run.killed,
        "requests": dict(gate.seen),
        "asked_beyond_what_is_stored": run.beyond(),
        "repeated_in_calls": dict(run.repeated()),
        "claimed_at_kills": dict(run.lost),
        "scorers_told": {role: len(path.read_text().splitlines()) for role, path in told.items()},
        "records_replayed": len(run.records),
        "rows_twice": 0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(_ROLES))
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--plain", action="store_true", help="without PyTorch and diffusers")
    parser.add_argument("--hurry", action="store_true", help="take what the dead had claimed out of the database")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(
            given.experiment, Path(folder), kills=given.kills, seed=given.seed, plain=given.plain, hurry=given.hurry
        )
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
