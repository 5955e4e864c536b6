"""Texts that a language model writes: states are its tokens."""
