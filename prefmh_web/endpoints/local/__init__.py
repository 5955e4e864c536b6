"""Models that run in this process, on a GPU if there is one: texts by `transformers`, images by `diffusers`.

    models.py              what the site offers, each loaded once; the one module that others import
    extra.py               PyTorch and the rest, which come with the extra `[gpu]` only
    network.py             logits of a batch of rows of unequal length, with a cache
    generation.py          rows drawn to their end from those logits, each with its own random numbers
    weights.py             a model and its tokeniser, read from a folder and checked
    chat.py                a prompt as token ids
    transformers_model.py  the `LanguageModel` of `sampler` over all of these
    sdxl_turbo.py          SDXL-Turbo as the decoder of latents that `sampler` draws

Only `models` can be imported without the extra. Models come from folders that the site's operator has filled: no
researcher names a path, and nothing is downloaded.
"""
