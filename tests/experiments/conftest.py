from tests.support.scorer_programs import declare

__all__ = ["declare"]
