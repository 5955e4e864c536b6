"""What a campaign is: one declaration, of which the form, the file, the API and the record are made.

campaign    the configuration of a campaign, where its parts do not fit together, and what of it others may see
study       the part of it about people

Each name is loaded on its first use: Django's start waits for no space of the sampler.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
