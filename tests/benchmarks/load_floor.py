"""The floor under a vote: what no implementation can leave out, as a plain pgbench script on tables of the same form.

One transaction: lock and read the comparison, store the vote, count, end the lease, lease the next question. The
tables are copies without foreign keys, filled with the open comparisons of the same run.
"""

from __future__ import annotations

import math
import subprocess
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.load_stage import Stage
from tests.support.servers import path_of

CLIENTS = 8
_COPIES = """
    CREATE SCHEMA floor;
    CREATE TABLE floor.comparison (LIKE campaigns_comparison INCLUDING ALL);
    CREATE TABLE floor.vote (LIKE campaigns_vote INCLUDING ALL);
    CREATE TABLE floor.lease (LIKE campaigns_lease INCLUDING ALL);
    INSERT INTO floor.comparison SELECT * FROM campaigns_comparison WHERE verdict IS NULL;
    CREATE TABLE floor.place AS SELECT id, row_number() OVER () AS place FROM floor.comparison;
    CREATE UNIQUE INDEX ON floor.place (place);
"""
_FILL = "INSERT INTO floor.lease SELECT * FROM campaigns_lease WHERE comparison_id IN (SELECT id FROM floor.comparison)"
# Each client is a person with one lease; pgbench substitutes what begins with a colon.
_SCRIPT = """\
\\set place random(1, {comparisons})
\\set voter random(1, 1000000000)
BEGIN;
SELECT id, log_r0, uniform, verdict FROM floor.comparison
    WHERE id = (SELECT id FROM floor.place WHERE place = :place) FOR NO KEY UPDATE \\gset
SELECT count(*) + 1 AS number FROM floor.vote WHERE comparison_id = :id \\gset
INSERT INTO floor.vote (key, comparison_id, judge_id, voter_id, number, proposal_side, chosen_side, elapsed_ms,
    layout, reason, cast_at)
    VALUES (gen_random_uuid(), :id, {judge}, :voter, :number, 'first', 'second', 4000, '', '', now());
UPDATE floor.lease SET ended_at = now(), ending = 'voted' WHERE voter_id = -1 - :client_id AND ended_at IS NULL;
INSERT INTO floor.lease (key, comparison_id, judge_id, voter_id, proposal_side, issued_at, expires_at, is_orphan)
    VALUES (gen_random_uuid(), :id, {judge}, -1 - :client_id, 'first', now(), now() + interval '2 minutes', false);
COMMIT;
"""


def measure(stage: Stage, per_s: float, seconds: int) -> dict:
    """Run the script at the given rate, then as fast as it goes; the stage's other processes are gone by then.

    Returns:
        What pgbench reached: votes per second unhindered; times, processor time and statements a vote at the rate.
    """
    script = _prepare(stage)
    stage.query("SELECT pg_stat_statements_reset()")
    before, begun = stage.processor_seconds()["PostgreSQL"], time.monotonic()
    log = stage.folder / "pgbench"
    _pgbench(stage, script, seconds, "--rate", f"{per_s:.1f}", "--log", "--log-prefix", str(log))
    took, processor = time.monotonic() - begun, stage.processor_seconds()["PostgreSQL"] - before
    # Each line: client, transaction, microseconds, ..., and last the lag behind the rate's schedule.
    lines = [line.split() for path in stage.folder.glob("pgbench.*") for line in path.read_text().splitlines()]
    latencies = [(int(line[2]) - int(line[-1])) / 1e6 for line in lines]
    statements = stage.statements()
    most = _pgbench(stage, script, max(3, seconds // 3)) / max(3, seconds // 3)
    return {
        "votes_per_s": len(lines) / took,
        "max_votes_per_s": most,
        "acknowledged_ms": in_ms(latencies),
        "processor_ms_a_vote": {"PostgreSQL": 1000 * processor / len(lines)},
        "statements_a_vote": statements / len(lines),
    }


def in_ms(seconds: list[float]) -> dict[str, float]:
    """Return the median, the 95th and the 99th percentile of some times by name, in milliseconds."""
    found = np.quantile(seconds, (0.5, 0.95, 0.99)) if seconds else [math.nan] * 3
    return {name: 1000 * float(value) for name, value in zip(("p50", "p95", "p99"), found, strict=True)}


def _prepare(stage: Stage) -> Path:
    for statement in (*_COPIES.split(";")[:-1], _FILL, "ANALYZE"):
        stage.query(statement)
    [(comparisons,)] = stage.query("SELECT count(*) FROM floor.place")
    [(judge,)] = stage.query("SELECT min(id) FROM campaigns_judge")
    path = stage.folder / "floor.sql"
    # A statement ends its line with a semicolon or \gset; otherwise pgbench reads on.
    path.write_text(_SCRIPT.format(comparisons=comparisons, judge=judge))
    return path


def _pgbench(stage: Stage, script: Path, seconds: int, *options: str) -> int:
    """Return how many transactions pgbench did."""
    command = [path_of("pgbench"), "--no-vacuum", "--file", str(script), "--time", str(seconds), *options]
    command += ["--client", str(CLIENTS), "--jobs", "1", stage.postgres.url("prefmh")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    counted = "number of transactions actually processed: "
    [line] = [line for line in done.stdout.splitlines() if line.startswith(counted)]
    return int(line.removeprefix(counted).partition("/")[0])
