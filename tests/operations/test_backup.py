"""The backup and restore of the README: the commands, and the record afterwards."""

import os
import subprocess
import sys

from tests.support.installations import ROOT
from tests.support.servers import path_of


def test_a_restored_backup_holds_the_whole_record(installation, tmp_path):
    [(campaign, _)] = installation.make_campaigns({"chains": 3, "steps": 20})
    dump = tmp_path / "prefmh.dump"
    whole = installation.postgres.url("prefmh")
    subprocess.run([path_of("pg_dump"), "--format=custom", f"--file={dump}", whole], check=True)

    restored = installation.postgres.create("restored")
    command = [path_of("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={restored}", str(dump)]
    subprocess.run(command, check=True)

    environment = {**os.environ, **installation.environment, "DATABASE_URL": restored}
    for arguments in (
        ["manage.py", "migrate", "--check"],
        ["-m", "tests.support.in_an_installation", "check", str(tmp_path)],
    ):
        numbers = [str(campaign)] if "check" in arguments else []
        done = subprocess.run(
            [sys.executable, *arguments, *numbers],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
