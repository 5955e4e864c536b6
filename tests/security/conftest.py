"""One world for all attacks of a module: what none of them may change need not be made anew."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from prefmh_web.transport import rate_limits
from tests.security import world as worlds
from tests.support.process import LiveServer, wait_until_idle


@pytest.fixture(autouse=True)
def fresh_limits() -> Iterator[None]:
    """Nobody pays for the attempts of the test before."""
    rate_limits.forget()
    yield
    rate_limits.forget()


@pytest.fixture(scope="module")
def db(django_db_setup, django_db_blocker) -> Iterator[None]:
    """In place of pytest-django's, which keeps each test in a transaction: a committing database, for a module.

    The name is what makes pytest-django set up a test database at all.
    """
    with django_db_blocker.unblock():
        yield
        wait_until_idle()
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture(scope="module")
def world(db, tmp_path_factory) -> Iterator[worlds.World]:
    """A committed world, for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.MEDIA_ROOT", tmp_path_factory.mktemp("media"))
        yield worlds.build()


@pytest.fixture(scope="module")
def world_site(world) -> Iterator[LiveServer]:
    """The real server in front of that world."""
    site = LiveServer()
    site.start()
    yield site
    site.stop()


@pytest.fixture
def unchanged(world) -> Iterator[None]:
    """Fail unless every row is afterwards what it was before."""
    before = worlds.digest()
    yield
    wait_until_idle()
    assert worlds.digest() == before
