"""Fixtures: a researcher, campaigns through the real doors, the real server on a thread, real browsers."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.template import Context, Template
from django.test import TransactionTestCase
from django.test.utils import instrumented_test_render

from prefmh_web.endpoints import limits
from tests.support import process, servers
from tests.support.campaigns import make_campaign
from tests.support.installations import (
    ARGUMENTS,
    CHROMIUM,
    Installation,
    LiveProcesses,
    Processes,
    Program,
    in_folder,
    on_the_test_database,
    wait_for,
)
from tests.support.models import declare
from tests.support.process import LiveServer, wait_until_idle, worker_in_this_process

__all__ = ["declare"]


# Playwright keeps an event loop in the test's thread, where Django would otherwise refuse to touch the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
# Files whose tests wait for servers and clocks: started first, so that no half of a run waits for the other at its end.
LONG = ("tests/flows/", "tests/docker/", "tests/embedded/", "tests/operations/", "tests/security/")
# Those that start PostgreSQL, Redis, RabbitMQ, nginx, Chromium or processes of ours, or wait for what is frozen. Half
# of all time went into these: a run of everything leaves them to `--servers`, which CI runs as well.
WITH_SERVERS = (
    "tests/docker/",
    "tests/embedded/test_serve.py",
    "tests/experiments/",
    "tests/flows/test_accessibility.py",
    "tests/flows/test_arabic.py",
    "tests/flows/test_faults.py",
    "tests/flows/test_frozen_server.py",
    "tests/flows/test_judges_faults.py",
    "tests/flows/test_keyboard.py",
    "tests/flows/test_object_kinds.py",
    "tests/flows/test_paid_study.py",
    "tests/flows/test_processes.py",
    "tests/flows/test_setting_up.py",
    "tests/flows/test_stalls.py",
    "tests/flows/test_viewing.py",
    "tests/operations/test_backup.py",
    "tests/operations/test_disk.py",
    "tests/operations/test_doctor.py",
    "tests/security/test_log_secrets.py",
    "tests/transport/test_postgresql.py",
)
# Whole studies with thousands of votes, and what is drawn a thousand times or enumerated: minutes of computing, left to
# `--statistics` in the same way.
WITH_STUDIES = (
    "tests/statistics/",
    "tests/endpoints/test_judging.py",
    "tests/endpoints/test_truth.py",
    "tests/flows/test_judges_distribution.py",
    "tests/flows/test_warm_up.py",
    "tests/sampler/diagnostics/test_found.py",
    "tests/sampler/diagnostics/test_joint_fit.py",
    "tests/sampler/experiments/test_exactness.py",
    "tests/sampler/judges/test_truth.py",
    "tests/sampler/kernels/test_crank_nicolson.py",
    "tests/sampler/kernels/test_fragments.py",
    "tests/sampler/kernels/test_learned_fragments.py",
    "tests/sampler/kernels/test_walk.py",
    "tests/sampler/objects/test_molecule_drawing.py",
    "tests/sampler/spaces/test_latents.py",
)
# The voting page in Chromium, which CI runs where it is hardest: on separate processes.
WITH_PROCESSES = ("tests/flows/test_browser.py",)
LEFT_OUT = {"servers": WITH_SERVERS, "statistics": WITH_STUDIES, "processes": WITH_PROCESSES}
# About the one-process mode itself.
EMBEDDED_ONLY = ("tests/embedded/", "tests/flows/test_processes.py")


def pytest_addoption(parser) -> None:
    told = "with tests.support.servers: serve with web, worker and beat as processes of their own"
    parser.addoption("--processes", action="store_true", default=None, help=told)
    told = "run the tests that start servers of their own, and no others"
    parser.addoption("--servers", action="store_true", default=None, help=told)
    told = "run the statistical tests and those that enumerate, whole studies among them, and no others"
    parser.addoption("--statistics", action="store_true", default=None, help=told)


def pytest_configure(config) -> None:
    """Hash passwords quickly in this process; the site's own setting is Django's. Leave out of a run of everything what
    an option asks for.
    """
    settings.PASSWORD_HASHERS = ["tests.support.campaigns.QuickHasher"]
    is_of_everything = config.args_source is not pytest.Config.ArgsSource.ARGS
    for option in LEFT_OUT if is_of_everything else ():
        if getattr(config.option, option) is None:
            setattr(config.option, option, False)


def pytest_collection_modifyitems(config, items) -> None:
    """Start long files first; on the server stack, skip what is the same without it (`support/servers.py`)."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    for item in items:
        # On a busy machine a page may connect anew between two looks at it. The summary names each second try.
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if settings.EMBEDDED:
        return
    for item in items:
        if item.nodeid.startswith(EMBEDDED_ONLY):
            item.add_marker(pytest.mark.skip(reason="tests the embedded mode; this run is on the server stack"))
        elif "installation" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason="brings servers of its own; the run without these has it"))


def pytest_ignore_collect(collection_path: Path, config) -> bool | None:
    """Ignore files that nothing asks for, or, where nothing is asked for, those that are left out: to import them all
    takes each process of a run longer than many a folder's tests. Files that are named on the command line are run
    whatever they are.
    """
    if collection_path.is_dir():
        return None
    asked, left_out = (
        tuple(
            path for option, paths in LEFT_OUT.items() if getattr(config.option, option) is is_asked for path in paths
        )
        for is_asked in (True, False)
    )
    name = collection_path.relative_to(config.rootpath).as_posix()
    is_wanted = name.startswith(asked) if asked else not name.startswith(left_out)
    return None if is_wanted else True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory) -> None:
    """A database of this run's own: one that a killed run left behind would spoil the next."""
    from django.db import connection

    embedded = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
    name = embedded if settings.EMBEDDED else f"test_prefmh_{os.getpid()}"
    connection.settings_dict["TEST"]["NAME"] = name
    if not settings.EMBEDDED:
        # Whoever works on this database hears this run's notifications.
        settings.CHANNEL_LAYERS["default"]["CONFIG"]["prefix"] = f"prefmh.{name}."


@pytest.fixture(scope="session")
def processes(request, tmp_path_factory) -> Processes | None:
    """The processes that serve the site in a run with --processes."""
    if not request.config.getoption("--processes"):
        return None
    if settings.EMBEDDED:
        pytest.fail("--processes needs PostgreSQL and Redis: python -m tests.support.servers --processes ...")
    return Processes(tmp_path_factory.mktemp("processes"))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker, processes) -> Iterator[None]:
    """On the server stack, workers beside the database, which they let go of before the database is dropped. Embedded,
    a test that has committed leaves the database as it was by a copy, not by Django's flush.
    """
    if settings.EMBEDDED:
        with django_db_blocker.unblock():
            process.keep_empty()
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(TransactionTestCase, "_fixture_teardown", lambda _: process.make_empty())
            yield
        return
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
    with on_the_test_database(processes) if processes else worker_in_this_process():
        yield
    with django_db_blocker.unblock():
        _cut_other_connections()


def _cut_other_connections() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        mine = "datname = current_database() AND pid <> pg_backend_pid()"
        cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")


@pytest.fixture(scope="session", autouse=True)
def widgets_render_as_in_use(django_test_environment) -> None:
    """For `response.context` Django's test environment copies the context of each template. Nobody reads that of a
    widget's: a page has hundreds of them, and they took a third of its time.
    """

    def render(template: Template, context: Context) -> str:
        is_widget = str(template.name).startswith("django/forms/")
        return template.nodelist.render(context) if is_widget else instrumented_test_render(template, context)

    Template._render = render


@pytest.fixture(autouse=True)
def nothing_known_of_servers() -> None:
    """Another test's server may have had the same address and the same key."""
    limits.forget()


@pytest.fixture(autouse=True)
def data_folder(settings, tmp_path: Path, processes) -> Path:
    """Uploads and pictures of each test in a folder of its own, unless other processes look for them."""
    data = processes.data if processes else tmp_path
    settings.MEDIA_ROOT = data / "media"
    return tmp_path


@pytest.fixture(params=("cpu", "cuda"))
def device(request) -> Iterator[str]:
    """Where the models of a test run. One that says it runs on a GPU and allocates nothing there fails."""
    import torch

    if request.param == "cpu":
        yield "cpu"
        return
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU with CUDA; the same test runs on the CPU")
    torch.cuda.init()
    before = _allocations()
    yield "cuda"
    assert _allocations() > before, "the test computed nothing on the GPU"
    assert torch.cuda.max_memory_allocated() > 0


def _allocations() -> int:
    """Return how often this process has taken memory of the GPU."""
    import torch

    return torch.cuda.memory_stats().get("allocation.all.allocated", 0)


@pytest.fixture
def idle_tasks(transactional_db) -> Iterator[Callable[[], None]]:
    """A committing database, and a call that returns once no task is running; none outlives the test."""
    yield wait_until_idle
    wait_until_idle()


@pytest.fixture
def researcher(idle_tasks, django_user_model):
    from prefmh_web.accounts.models import make_researcher

    user = django_user_model.objects.create_user("ada", password="correct horse battery staple")
    make_researcher(user)
    return user


@pytest.fixture
def signed_in(client, researcher):
    """A browser in which the researcher is signed in."""
    client.force_login(researcher)
    return client


@pytest.fixture
def campaign(researcher, idle_tasks):
    """A started campaign of twelve texts, two judges with N = 2 and 1, three chains."""
    return make_campaign(researcher)


@pytest.fixture
def live_site(idle_tasks, processes) -> Iterator[LiveServer | LiveProcesses]:
    """The real server: HTTP, sockets, tasks and the sweeping clock; on threads or as processes."""
    site = LiveProcesses(processes) if processes else LiveServer()
    site.start()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def chromium():
    """A real Chromium.

    For each module anew: while it lives, Playwright's event loop runs in the tests' thread, and other tests need
    a thread without one.
    """
    servers.demand(CHROMIUM.exists(), f"needs {CHROMIUM} (Debian: apt-get install chromium)")
    from playwright.sync_api import expect, sync_playwright

    # As long as it waits for what it clicks. On a busy machine a page connects anew before its answer comes.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], object]:
    """Return a call that waits for a condition, and fails naming it when it does not come."""
    return lambda condition, seconds=20: wait_for(condition, str(condition), seconds)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program of one process, in the test's folder."""
    program = Program(tmp_path, in_folder(tmp_path))
    yield program
    program.stop()


@pytest.fixture(scope="session")
def installation(tmp_path_factory) -> Iterator[Installation]:
    """PostgreSQL, Redis, two web processes, a worker and beat, shared by the tests that drive and break them."""
    servers.require_engines()
    with Installation(tmp_path_factory.mktemp("installation")).running() as installation:
        yield installation
