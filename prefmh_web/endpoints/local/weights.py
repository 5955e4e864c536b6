"""A language model and its tokeniser, from a folder of safetensors and nowhere else."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefmh_web.endpoints.local.extra import needs
from prefmh_web.endpoints.local.network import Network, check_padding

if TYPE_CHECKING:
    import torch
else:
    torch = needs("torch")


class Weights:
    """A language model that is loaded. Any number of `TransformersModel` may share it.

    Args:
        model: an `AutoModelForCausalLM` where it shall run, or any module called like one.
        tokenizer: the one it was trained with.

    Raises:
        ValueError: no end-of-sequence token is known, or it is not in the vocabulary.
    """

    def __init__(self, model: torch.nn.Module, tokenizer: Any) -> None:
        self.network, self.tokenizer = Network(model), tokenizer
        self.ends = _ends(model, tokenizer, self.network.vocabulary)
        # One batch at a time, whatever asks: two would need the memory of two.
        self.lock = threading.Lock()


def load_weights(folder: Path, device: str | None = None) -> Weights:
    """Return the model in a folder: bfloat16 on a GPU, float32 on the CPU.

    Nothing is downloaded, no code that lies in the folder is run, and weights are read from safetensors only, which
    cannot hold code.

    Args:
        folder: as `save_pretrained` writes it: config.json, *.safetensors, the tokeniser.
        device: of PyTorch; CUDA if there is any, else the CPU.

    Raises:
        ImportError: the extra is missing.
        FileNotFoundError: the folder, or safetensors in it, are missing.
        ValueError: files are missing or damaged; the model has no end-of-sequence token, minds padding, or needs code
            of its own; or the device is not there.
    """
    transformers = needs("transformers")
    check_folder(folder, "*.safetensors")
    place = place_of(device)
    if place.type == "cuda":
        # cuDNN makes a plan for each length of the cache, which is for each token: 20 tokens a second in place of 96,
        # and with 256 rows 4,700 in place of 19,900 (1.5 B weights in bfloat16, torch 2.11, one H100).
        torch.backends.cuda.enable_cudnn_sdp(False)
    strict = {"local_files_only": True, "trust_remote_code": False}
    with unreadable_files("LOCAL_MODELS", folder):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32 if place.type == "cpu" else torch.bfloat16,
            use_safetensors=True,
            variant=variant_in("LOCAL_MODELS", folder, [folder]),
            **strict,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **strict)
    weights = Weights(model.to(place).requires_grad_(False), tokenizer)
    check_padding(weights.network)
    return weights


def check_folder(folder: Path, weights: str) -> None:
    """Raise FileNotFoundError where a folder, or the weights in it (a glob), are missing.

    `transformers` would take a name that is no folder for one to look up elsewhere.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"the model's folder {folder} is missing; models are not downloaded")
    if not any(folder.glob(weights)):
        raise FileNotFoundError(f"the model's folder {folder} must hold {weights}; other formats are not read")


def variant_in(setting: str, folder: Path, parts: Iterable[Path]) -> str | None:
    """Return which variant of its weights a model is to be loaded from: None where the plain ones are there.

    Models are published with variants beside the plain weights, as in model.fp16.safetensors, and people download one
    of the two.

    Args:
        setting: which names the folder, for the error's words.
        parts: the folders of the model's parts, each with its weights.

    Raises:
        ValueError: there are several variants, and nothing says which; or no variant that all parts have.
    """
    variants = [_variants_in(part) for part in parts]
    lacking = [names for is_plain, names in variants if not is_plain]
    if not lacking:
        return None
    shared = sorted(set.intersection(*lacking))
    if len(shared) != 1:
        found = " or ".join(sorted(set().union(*lacking))) or "none"
        raise ValueError(
            f"{setting} names {folder}, which must hold the model's plain weights, or one variant of them in every "
            f"part; it holds {found}. Download the plain weights as well"
        )
    return shared[0]


def _variants_in(part: Path) -> tuple[bool, set[str]]:
    """Return whether the plain weights are in a folder, and which variants: fp16 for model.fp16-1-of-2.safetensors."""
    middles = [path.name.split(".")[1:-1] for path in part.glob("*.safetensors")]
    return [] in middles, {middle[0].partition("-")[0] for middle in middles if middle}


@contextlib.contextmanager
def unreadable_files(setting: str, folder: Path) -> Iterator[None]:
    """Say which setting names the folder whose files cannot be loaded, and what to do, where a library says less.

    Raises:
        ValueError: instead of what the library raises.
    """
    damaged = needs("safetensors").SafetensorError
    try:
        yield
    except (OSError, damaged) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{setting} names {folder}, which cannot be loaded: {why}. Download the model again, with every file of "
            "it, or correct the setting"
        ) from error


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def place_of(device: str | None) -> torch.device:
    """Return the device of a name; without one CUDA if there is any, else the CPU.

    Raises:
        ValueError: there is no such device here.
    """
    try:
        place = torch.device(device or default_device())
        torch.empty(0, device=place)
    # PyTorch built without CUDA fails an assertion.
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f"LOCAL_DEVICE must name a device that is there, not {device!r}: {error}") from error
    return place


def _ends(model: torch.nn.Module, tokenizer: Any, vocabulary: int) -> frozenset[int]:
    """Return the tokens that end a text: a chat model often has two, the end of its turn and that of the document.

    They are all that is read of the model's `generation_config`.
    """
    found = [tokenizer.eos_token_id, getattr(model.config.get_text_config(), "eos_token_id", None)]
    found.append(getattr(getattr(model, "generation_config", None), "eos_token_id", None))
    ends: set[int] = set()
    for each in found:
        ends |= set(each) if isinstance(each, list | tuple) else {each}
    ends.discard(None)
    if not ends:
        raise ValueError("the model must have an end-of-sequence token; its tokeniser and its config name none")
    if beyond := [end for end in ends if not 0 <= end < vocabulary]:
        raise ValueError(f"the end-of-sequence token {beyond[0]} is not among the model's {vocabulary} tokens")
    return frozenset(ends)
