"""The models that a site offers: from folders named in its settings, loaded once, never downloaded."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from prefmh_web.endpoints.local import local_model, model_names
from prefmh_web.endpoints.local.texts import TransformersModel, Weights
from tests.gpu.small_models import llama, moved, tokenizer_of

WORDS = ("a", "b", "c")


@pytest.fixture
def folder(tmp_path):
    llama(1 + len(WORDS)).save_pretrained(tmp_path / "small")
    tokenizer_of(WORDS).save_pretrained(tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture
def offered(settings, folder):
    settings.LOCAL_DEVICE = "cpu"
    settings.LOCAL_MODELS = {"small": folder, "other": folder.parent / "other"}
    return folder


def saved(device, **options):
    """Return the model of the folder as it was before it was saved, in the precision of its device."""
    dtype = {"cpu": torch.float32, "cuda": torch.bfloat16}[device]
    weights = Weights(moved(llama(1 + len(WORDS)), device, dtype), tokenizer_of(WORDS))
    return TransformersModel(weights, limit=6, **options)


def drawn(model):
    return model.continue_batch([np.random.default_rng(row) for row in range(20)], ["a b"] * 20, [()] * 20)


def test_a_model_in_a_folder_writes_what_it_wrote_when_it_was_saved(offered, settings, device):
    settings.LOCAL_DEVICE = device
    assert model_names() == ("small", "other")
    assert drawn(local_model("small", limit=6, temperature=1.2)) == drawn(saved(device, temperature=1.2))


def test_a_folder_is_read_once(offered):
    first = drawn(local_model("small", limit=6))
    shutil.rmtree(offered)
    assert drawn(local_model("small", limit=6)) == first


def test_weights_that_could_hold_code_are_not_read(offered):
    torch.save(llama(1 + len(WORDS)).state_dict(), offered / "pytorch_model.bin")
    (offered / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="safetensors"):
        local_model("small", limit=6)


def test_a_folder_of_one_variant_is_loaded_as_that(offered, settings, device):
    settings.LOCAL_DEVICE = device
    (offered / "model.safetensors").rename(offered / "model.fp16.safetensors")
    assert drawn(local_model("small", limit=6)) == drawn(saved(device))


@pytest.mark.parametrize("content", ["version https://git-lfs.github.com/spec/v1\n", ""])
def test_weights_that_are_damaged_are_refused_with_their_setting_and_what_to_do(offered, content):
    (offered / "model.safetensors").write_text(content)
    with pytest.raises(ValueError, match=r"LOCAL_MODELS names .*cannot be loaded: .*Download the model again"):
        local_model("small", limit=6)


def test_texts_and_pictures_are_made_without_django_rdkit_and_celery():
    pytest.importorskip("diffusers", reason="needs the extra [gpu]")
    program = """
import sys
sys.modules.update(dict.fromkeys(("django", "rdkit", "celery", "aiohttp", "redis")))
import prefmh_web.endpoints.local.images, prefmh_web.endpoints.local.texts, sampler.chain
"""
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)
