"""Images that a decoder makes of a latent vector z ~ N(0, I): states are latents."""
