"""Records are signed with the site's key, which is made once, kept from others, published and rotated."""

import base64
import hashlib
import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management import CommandError, call_command
from django.urls import reverse

import sampler
from prefmh_web.campaigns.record import keys
from tests.support.record import export_to
from tests.support.signing import files_of, write
from tests.support.stack import make_campaign


@pytest.fixture
def record(researcher, idle_tasks, tmp_path) -> Path:
    return export_to(make_campaign(researcher), tmp_path)


def verified(path: Path, key: str | None = None) -> str:
    out = StringIO()
    call_command("verify", str(path), key=key, stdout=out)
    return out.getvalue()


def test_a_record_names_each_of_its_files_and_is_signed_as_rfc_8032_says(record):
    files = files_of(record)
    manifest, signature = (json.loads(files[name]) for name in ("manifest.json", "signature.json"))
    assert list(files)[-2:] == ["manifest.json", "signature.json"]
    unsigned = {name: hashlib.sha256(files[name]).hexdigest() for name in list(files)[:-2]}
    assert manifest["files"] == unsigned
    public = base64.b64decode(signature["public_key"])
    Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(signature["signature"]), files["manifest.json"])
    assert signature["fingerprint"] == hashlib.sha256(public).hexdigest() == keys.public_keys()[0].fingerprint


def test_a_site_verifies_its_own_record_by_fingerprint_file_and_pem(record, client, tmp_path):
    [key] = keys.public_keys()
    published = client.get("/.well-known/prefmh-keys.json")
    (tmp_path / "keys.json").write_bytes(published.content)
    pem = Ed25519PublicKey.from_public_bytes(key.public).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    assert f"signed by {key.fingerprint}, not checked whose" in verified(record)
    for named in (key.fingerprint, key.fingerprint.upper(), str(tmp_path / "keys.json"), str(tmp_path / "key.pem")):
        assert f"signed by {key.fingerprint}, one of the keys that you named" in verified(record, named)


def test_a_record_of_another_key_and_an_unsigned_one_are_refused_where_a_key_is_named(record, tmp_path):
    other = "0" * 64
    unsigned = write(dict(list(files_of(record).items())[:-2]), tmp_path / "unsigned.zip")
    assert "It is not signed" in verified(unsigned)
    for path, said in ((record, "it is signed by"), (unsigned, "nobody signed it")):
        out = StringIO()
        with pytest.raises(CommandError) as refused:
            call_command("verify", str(path), key=other, stdout=out)
        assert refused.value.returncode == 1
        assert f"signature.json: {said}" in out.getvalue()


@pytest.mark.parametrize("named", ["abc", "0" * 63])
def test_what_names_no_key_is_told(record, named):
    with pytest.raises(CommandError, match=r"--key .* must name a file of keys, or a fingerprint") as refused:
        verified(record, named)
    assert refused.value.returncode == 2


def test_the_key_is_its_owners_alone_and_no_part_of_what_is_published(record, settings, client):
    path = Path(settings.SIGNING_KEYS)
    assert path.stat().st_mode & 0o777 == 0o600
    private = json.loads(path.read_text())["current"]["private_key"].split("\n")[1]
    assert private not in client.get("/.well-known/prefmh-keys.json").content.decode()
    assert private.encode() not in b"".join(files_of(record).values())


def test_many_processes_at_once_make_one_key(tmp_path):
    """Each makes it at the same moment, as far as that can be had; all of them have the one that is kept."""
    program = "import django; django.setup(); from prefmh_web.campaigns.record import keys\n"
    program += "print(keys.public_keys()[0].fingerprint)"
    environment = {"PREFMH_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings", "PATH": ""}
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(3)
    ]
    told = {process.communicate(timeout=120)[0] for process in started}
    assert len(told) == 1
    assert len(told.pop().strip()) == 64
    assert [path.name for path in tmp_path.glob("signing-keys*")] == ["signing-keys.json"]


def test_a_rotated_key_signs_what_follows_and_the_old_one_still_verifies(record, researcher, tmp_path, client):
    old = keys.public_keys()[0].fingerprint
    out = StringIO()
    call_command("signing_key", "--rotate", stdout=out)
    current, retired = keys.public_keys()
    assert (retired.fingerprint, bool(retired.retired_at), current.retired_at) == (old, True, "")
    assert f"{current.fingerprint}  made" in out.getvalue()
    (tmp_path / "keys.json").write_bytes(client.get("/.well-known/prefmh-keys.json").content)
    (tmp_path / "later").mkdir()
    later = export_to(make_campaign(researcher), tmp_path / "later")
    for path, key in ((record, old), (later, current.fingerprint)):
        assert f"signed by {key}, one of" in verified(path, str(tmp_path / "keys.json"))
    keys.rotate()
    assert [key.fingerprint for key in keys.public_keys()][1:] == [current.fingerprint, old]


@pytest.mark.parametrize("content", ["", "{}", '{"current": {"private_key": "no"}, "retired": []}'])
def test_a_damaged_file_of_keys_is_told_and_stays(settings, content):
    path = Path(settings.SIGNING_KEYS)
    path.write_text(content)
    with pytest.raises(CommandError, match=r"signing-keys\.json holds no key"):
        call_command("signing_key")
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["", '{"current": {"private_key": "no"}, "retired": []}'])
def test_a_download_without_a_key_that_signs_says_so_on_the_page(settings, researcher, idle_tasks, client, content):
    campaign = make_campaign(researcher)
    Path(settings.SIGNING_KEYS).write_text(content)
    client.force_login(researcher)
    answer = client.get(reverse("console:download", args=[campaign.pk, "export.zip"]))
    assert (answer.status_code, answer.streaming, answer.headers.get("Content-Disposition")) == (503, False, None)
    page = answer.content.decode()
    assert "The record cannot be signed: " in page
    assert "signing-keys.json holds no key" in page
    assert "Download all (ZIP)" in page
    # What needs no signature comes as before.
    assert client.get(reverse("console:download", args=[campaign.pk, "recipe.json"])).status_code == 200


def test_keys_that_cannot_be_read_are_told_without_where_they_are(settings, client, db):
    Path(settings.SIGNING_KEYS).write_text("{}")
    answer = client.get("/.well-known/prefmh-keys.json")
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "text/plain")
    assert "cannot be read" in answer.content.decode()
    assert str(settings.SIGNING_KEYS) not in answer.content.decode()


def test_files_are_hashed_while_they_are_streamed():
    manifest = sampler.Manifest()
    streamed = manifest.streamed("a", iter([b"one", b"two"]))
    assert (next(streamed), manifest.files) == (b"one", {})
    assert (list(streamed), manifest.files) == ([b"two"], {"a": hashlib.sha256(b"onetwo").hexdigest()})
