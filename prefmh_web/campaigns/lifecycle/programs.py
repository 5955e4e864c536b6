"""The tokens of programs that judge: the one door through which they are made and withdrawn, and where one is found.

A token answers for one judge of one campaign and can do nothing else. A judge has one at a time: making another one
withdraws the one before. Questions that a program holds stay what they are; a program with the new token goes on.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from prefmh_web.accounts import tokens
from prefmh_web.campaigns import events
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign, Judge, JudgeToken

PREFIX = "prefmh-judge_"


def make_token(judge: Judge, by: User | None = None) -> str:
    """Make a judge's token and withdraw the one before; return what the program shows, which nothing tells again.

    Raises:
        NotPossible: no program is this judge.
    """
    if not judge.is_program:
        raise NotPossible(f"“{judge.question}” is not answered by a program, so it has no token.")
    plain = tokens.new_secret(PREFIX)
    with transaction.atomic():
        # Held, so that of two at once the second withdraws the first one's.
        Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)
        _withdraw(judge)
        JudgeToken.objects.create(judge=judge, digest=tokens.digest(plain))
        events.note(judge.campaign_id, events.Kind.JUDGE_TOKEN_MADE, by, {"judge": judge.place})
    return plain


def withdraw_token(judge: Judge, by: User | None = None) -> bool:
    """Let no program in by a judge's token any more; False if it had none."""
    with transaction.atomic():
        is_change = _withdraw(judge)
        if is_change:
            events.note(judge.campaign_id, events.Kind.JUDGE_TOKEN_WITHDRAWN, by, {"judge": judge.place})
    return is_change


def _withdraw(judge: Judge) -> bool:
    live = JudgeToken.objects.filter(judge=judge, withdrawn_at__isnull=True)
    return bool(live.update(withdrawn_at=timezone.now()))


def judge_shown(plain: str) -> Judge | None:
    """Return the judge whose token a program has shown, with its campaign; None if it lets nobody in. Notes its use."""
    if not plain.startswith(PREFIX):
        return None
    found = JudgeToken.objects.select_related("judge__campaign__owner")
    token = found.filter(digest=tokens.digest(plain), withdrawn_at__isnull=True).first()
    if token is None:
        return None
    campaign = token.judge.campaign
    if campaign.status == Campaign.Status.DELETING or not campaign.owner.is_active:
        return None
    tokens.note_used(JudgeToken.objects.filter(pk=token.pk), token.used_at)
    return token.judge
