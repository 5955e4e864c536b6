"""Eyes for the tests' language model: a CLIP of random weights, which llama.cpp's server reads beside the model.

A picture becomes sixty-four tokens, whose values depend on its pixels. So what the model answers depends on what it
sees, as it does on what it reads.
"""

from pathlib import Path

import gguf
import numpy as np

_EYE, _HEADS, _LAYERS, _HIDDEN = 32, 2, 2, 64
_SIZE, _PATCH = 112, 14


def write_projector(path: Path, width: int, seed: int = 20261123) -> Path:
    """Write the picture encoder and its projector as a GGUF file, and return its path.

    Args:
        width: of the language model's embeddings.
    """
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_type("mmproj")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_clip_has_vision_encoder(True)
    # Two layers, as LLaVA has them.
    writer.add_clip_projector_type("mlp")
    writer.add_vision_projection_dim(width)
    writer.add_vision_image_size(_SIZE)
    writer.add_vision_patch_size(_PATCH)
    writer.add_vision_embedding_length(_EYE)
    writer.add_vision_feed_forward_length(_HIDDEN)
    writer.add_vision_block_count(_LAYERS)
    writer.add_vision_head_count(_HEADS)
    writer.add_vision_attention_layernorm_eps(1e-5)
    writer.add_vision_image_mean([0.5] * 3)
    writer.add_vision_image_std([0.5] * 3)
    writer.add_vision_use_gelu(True)
    for name, tensor in _weights(rng, width).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(rng: np.random.Generator, width: int) -> dict[str, np.ndarray]:
    def normal(*shape: int) -> np.ndarray:
        return 0.2 * rng.standard_normal(shape)

    weights = {
        "v.class_embd": normal(_EYE),
        "v.patch_embd.weight": normal(_EYE, 3, _PATCH, _PATCH),
        "v.position_embd.weight": normal((_SIZE // _PATCH) ** 2 + 1, _EYE),
    }
    matrices = {"mm.0": (width, _EYE), "mm.2": (width, width)}
    norms = ["v.pre_ln", "v.post_ln"]
    for layer in range(_LAYERS):
        block = f"v.blk.{layer}"
        matrices |= {f"{block}.{name}": (_EYE, _EYE) for name in ("attn_q", "attn_k", "attn_v", "attn_out")}
        matrices |= {f"{block}.ffn_up": (_HIDDEN, _EYE), f"{block}.ffn_down": (_EYE, _HIDDEN)}
        norms += [f"{block}.ln1", f"{block}.ln2"]
    for name, shape in matrices.items():
        weights |= {f"{name}.weight": normal(*shape), f"{name}.bias": np.zeros(shape[0])}
    for name in norms:
        weights |= {f"{name}.weight": np.ones(_EYE), f"{name}.bias": np.zeros(_EYE)}
    return weights
