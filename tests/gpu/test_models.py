"""The models that a site offers: from folders named in its settings, loaded once, never downloaded."""

import shutil

import numpy as np
import pytest
import torch

from prefmh_web.endpoints.local import local_model, model_names
from prefmh_web.endpoints.local.texts import TransformersModel, Weights
from tests.gpu.small_models import llama, tokenizer_of

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


def drawn(model):
    return model.continue_batch([np.random.default_rng(row) for row in range(20)], ["a b"] * 20, [()] * 20)


def test_a_model_in_a_folder_writes_what_it_wrote_when_it_was_saved(offered):
    assert model_names() == ("small", "other")
    loaded = local_model("small", limit=6, temperature=1.2)
    saved = TransformersModel(Weights(llama(1 + len(WORDS)), tokenizer_of(WORDS)), limit=6, temperature=1.2)
    assert drawn(loaded) == drawn(saved)


def test_a_folder_is_read_once(offered):
    first = drawn(local_model("small", limit=6))
    shutil.rmtree(offered)
    assert drawn(local_model("small", limit=6)) == first


def test_weights_that_could_hold_code_are_not_read(offered):
    torch.save(llama(1 + len(WORDS)).state_dict(), offered / "pytorch_model.bin")
    (offered / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="safetensors"):
        local_model("small", limit=6)


def test_a_folder_of_one_variant_is_loaded_as_that(offered):
    (offered / "model.safetensors").rename(offered / "model.fp16.safetensors")
    saved = TransformersModel(Weights(llama(1 + len(WORDS)), tokenizer_of(WORDS)), limit=6)
    assert drawn(local_model("small", limit=6)) == drawn(saved)


@pytest.mark.parametrize("content", ["version https://git-lfs.github.com/spec/v1\n", ""])
def test_weights_that_are_damaged_are_refused_with_their_setting_and_what_to_do(offered, content):
    (offered / "model.safetensors").write_text(content)
    with pytest.raises(ValueError, match=r"LOCAL_MODELS names .*cannot be loaded: .*Download the model again"):
        local_model("small", limit=6)
