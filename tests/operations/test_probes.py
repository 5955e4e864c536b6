"""What probes and scrapers are told, and who is told nothing."""

import ipaddress

import httpx
import pytest

from tests.support.installations import wait_for


def test_alive_needs_no_database_and_sets_no_cookie(client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"alive\n")
    assert not answer.cookies


def test_ready_names_each_part(client, db):
    answer = client.get("/readyz")
    assert answer.json() == dict.fromkeys(("database", "migrations", "channel layer", "broker", "disk"), "ok")
    assert answer.status_code == 200


def test_metrics_are_for_nobody_by_default(client, db):
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer None"}).status_code == 403


@pytest.mark.parametrize(
    ("address", "status"), [("10.1.2.3", 200), ("::1", 200), ("192.168.1.5", 403), ("", 403), ("nonsense", 403)]
)
def test_metrics_are_for_the_addresses_named(client, db, settings, address, status):
    settings.METRICS_ALLOW = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1/128"))
    assert client.get("/metrics", REMOTE_ADDR=address).status_code == status


def test_metrics_are_for_bearers_of_the_token(client, db, settings):
    settings.METRICS_TOKEN = "the-token"
    assert client.get("/metrics", headers={"Authorization": "Bearer the-token"}).status_code == 200
    assert client.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 403


def read(client) -> dict[str, float]:
    page = client.get("/metrics", headers={"Authorization": "Bearer the-token"}).content.decode()
    lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_a_process_without_redis_or_database_is_alive_and_not_ready(installation):
    installation.redis.kill()
    try:
        answer = httpx.get(f"{installation.urls[0]}/readyz", timeout=30)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["channel layer"]
        assert "does not answer" in answer.json()["broker"]
        assert answer.json()["database"] == "ok"
        found = installation.run("manage.py", "doctor", check=False)
        assert found.returncode == 1
        assert "Start Redis" in found.stdout
    finally:
        installation.redis.start()
    installation.postgres.kill()
    try:
        answer = httpx.get(f"{installation.urls[1]}/readyz", timeout=60)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["database"]
        assert httpx.get(f"{installation.urls[1]}/healthz", timeout=30).status_code == 200
    finally:
        installation.postgres.start()
    wait_for(lambda: all(httpx.get(f"{url}/readyz", timeout=60).is_success for url in installation.urls), "ready again")
