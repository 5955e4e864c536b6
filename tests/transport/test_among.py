"""Rows of several keys: the same ones as with `in`, by one statement however many they are."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from prefmh_web.transport.rate_limits import among

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return User.objects.bulk_create(User(username=f"person-{number}’s “name”") for number in range(12))


@pytest.mark.parametrize("count", [0, 1, 12])
def test_it_finds_what_in_finds(people, count):
    keys, names = [each.pk for each in people[:count]], [each.username for each in people[:count]]
    assert set(User.objects.filter(among("pk", keys))) == set(people[:count])
    assert set(User.objects.filter(among("username", names))) == set(people[:count])
    assert User.objects.exclude(among("pk", keys)).filter(pk__in=[each.pk for each in people]).count() == 12 - count
    assert User.objects.filter(among("pk", [*keys, 2**40])).update(first_name="here") == count


def test_the_statement_is_the_same_however_many_there_are(people):
    def statement(count: int) -> str:
        sql, _ = User.objects.filter(among("pk", [each.pk for each in people[:count]])).query.sql_with_params()
        return sql

    assert len({statement(count) for count in range(13)}) == 1
    with CaptureQueriesContext(connection) as queries:
        list(User.objects.filter(among("pk", {each.pk for each in people})))
    assert len(queries) == 1
