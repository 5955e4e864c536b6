from tests.support.models import declare

__all__ = ["declare"]
