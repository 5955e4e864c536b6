"""How long something takes, in words."""

_MINUTE, _DAY = 60, 86_400


def in_words(seconds: float) -> str:
    """Return a duration with one unit, or with two where the larger one alone would be coarse: 8 s, 12 min, 3 h 20 min,
    5 days.
    """
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE)
    if minutes < 100:
        return f"{minutes} min"
    if seconds < 2 * _DAY:
        # Tens of minutes are enough beside hours.
        hours, rest = divmod(round(seconds / 600) * 10, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(seconds / _DAY):,} days"
