"""The backup and restore of the README: the commands, and the record afterwards."""

import subprocess

from tests.support.installations import Program
from tests.support.servers import path_of


def test_a_restored_backup_holds_the_whole_record(installation, tmp_path):
    [(campaign, _)] = installation.make_campaigns({"chains": 3, "steps": 20})
    dump = tmp_path / "prefmh.dump"
    whole = installation.postgres.url("prefmh")
    subprocess.run([path_of("pg_dump"), "--format=custom", f"--file={dump}", whole], check=True)

    restored = installation.postgres.create("restored")
    command = [path_of("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={restored}", str(dump)]
    subprocess.run(command, check=True)

    program = Program(tmp_path, installation.environment | {"DATABASE_URL": restored})
    program.run("manage.py", "migrate", "--check")
    program.call("check", str(tmp_path), [campaign])
