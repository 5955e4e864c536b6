"""Fixtures: a researcher, campaigns through the real doors, the real server on a thread, real browsers."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from tests.support import engines
from tests.support.processes import Installation
from tests.support.stack import LiveServer, make_campaign, start_worker, wait_until_idle

CHROMIUM = Path("/usr/bin/chromium")
# Playwright keeps an event loop in the test's thread, where Django would otherwise refuse to touch the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
# About the one-process mode itself.
EMBEDDED_ONLY = ("tests/embedded/", "tests/demo/", "tests/flows/test_restart.py")


def pytest_collection_modifyitems(items) -> None:
    """On the server stack, skip what tests the embedded mode. See `tests/support/server_stack.py`."""
    if settings.EMBEDDED:
        return
    for item in items:
        if item.nodeid.startswith(EMBEDDED_ONLY):
            item.add_marker(pytest.mark.skip(reason="tests the embedded mode; this run is on the server stack"))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory) -> None:
    """A database of this run's own: one that a killed run left behind would spoil the next."""
    from django.db import connection

    embedded = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
    connection.settings_dict["TEST"]["NAME"] = embedded if settings.EMBEDDED else f"test_prefmh_{os.getpid()}"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """On the server stack, a worker beside the database, which it lets go of before the database is dropped."""
    if settings.EMBEDDED:
        yield
        return
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
    with start_worker():
        yield
    with django_db_blocker.unblock():
        _cut_other_connections()


def _cut_other_connections() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        mine = "datname = current_database() AND pid <> pg_backend_pid()"
        cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")


@pytest.fixture(autouse=True)
def data_folder(settings, tmp_path: Path) -> Path:
    """Uploads and pictures of each test in a folder of its own."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path


@pytest.fixture
def idle_tasks(transactional_db) -> Iterator[Callable[[], None]]:
    """A committing database, and a call that returns once no task is running; none outlives the test."""
    yield wait_until_idle
    wait_until_idle()


@pytest.fixture
def researcher(idle_tasks, django_user_model):
    from prefmh_web.accounts.roles import make_researcher

    user = django_user_model.objects.create_user("ada", password="correct horse battery staple")
    make_researcher(user)
    return user


@pytest.fixture
def campaign(researcher, idle_tasks):
    """A started campaign of twelve texts, two judges with N = 2 and 1, three chains."""
    return make_campaign(researcher)


@pytest.fixture
def live_site(idle_tasks) -> Iterator[LiveServer]:
    """The real server: HTTP, sockets, tasks and the sweeping clock."""
    site = LiveServer()
    site.start()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def chromium():
    """A real Chromium; the tests that need it are skipped, with the reason, where there is none.

    For each module anew: while it lives, Playwright's event loop runs in the tests' thread, and other tests need
    a thread without one.
    """
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI needs {CHROMIUM}; .ci/run installs it")
        pytest.skip(f"needs {CHROMIUM} (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*quiet, "--disable-sync"])
        yield browser
        browser.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], object]:
    """Return a call that waits for a condition, and fails naming it when it does not come."""

    def wait_for(condition: Callable[[], object], seconds: float = 20) -> object:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := condition():
                return found
            threading.Event().wait(0.05)
        raise AssertionError(f"did not happen within {seconds} s: {condition}")

    return wait_for


@pytest.fixture(scope="session")
def installation(tmp_path_factory) -> Iterator[Installation]:
    """PostgreSQL, Redis, two web processes, a worker and beat, shared by the tests that drive and break them."""
    engines.demand()
    installation = Installation(tmp_path_factory.mktemp("installation"))
    try:
        installation.start()
        yield installation
    finally:
        installation.stop()
