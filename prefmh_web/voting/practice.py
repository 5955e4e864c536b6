"""The page of a pair to practise on. It shows the pair as the voting page does, and needs no script."""

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.views.decorators.http import require_safe

from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator, Side
from prefmh_web.campaigns.objects import contexts_by_content
from prefmh_web.objects import StoredObject, media
from prefmh_web.participants import attention
from prefmh_web.participants.options import options_of
from prefmh_web.participants.stages import Exercise
from prefmh_web.voting import admission
from sampler.judges import shared_context

TEMPLATE = "voting/practice.html"


def context(exercise: Exercise, annotator: Annotator, token: str) -> Mapping[str, object]:
    """Return what the page shows of a pair: its question, and the two objects."""
    started, pair = started_campaign(annotator.campaign), exercise.pair
    first, second = contexts_by_content(annotator.campaign, started.config, pair.first, pair.second)
    context = shared_context(first, second)
    options = options_of(
        started.object_kind,
        pair.first,
        pair.second,
        lambda side: reverse_lazy("voting:practice-picture", args=[token, exercise.number, side]),
        context,
    )
    question = attention.question_of(pair, started.config)
    shown = {"question": question, "kind": started.object_kind, "options": options, "context": context.shared}
    return {"exercise": exercise, **started.config.shown_as, **shown}


@require_safe
def picture(request: HttpRequest, token: str, number: str, side: str) -> HttpResponse:
    """Send the picture of one side of a pair to practise on, to those who take part."""
    annotator = admission.annotator_by(request.session, token)
    pairs = annotator.campaign.config.study.protocol.practice if annotator else ()
    if annotator is None or int(number) >= len(pairs):
        raise Http404("There is no such pair.")
    pair = pairs[int(number)]
    first, second = StoredObject(pair.first), StoredObject(pair.second)
    shown, beside = (first, second) if side == Side.FIRST else (second, first)
    return media.response(request, annotator.campaign.object_kind, shown, beside)
