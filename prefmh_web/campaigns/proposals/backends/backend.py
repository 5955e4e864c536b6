"""What every source of proposals offers; as it stands here, it is the kernel alone."""

from collections.abc import Collection, Hashable, Iterable

from prefmh_web.campaigns.models import Campaign, PrefetchedProposal


class Backend:
    """Proposals by the sampler alone: each is drawn when it is needed, and nothing has to be prepared."""

    is_slow = False
    """Whether a proposal may take seconds. Then it is drawn by a worker of its own queue, and ahead of time."""
    batch_size = 1
    """How many chains one call serves."""

    @property
    def is_one_by_one(self) -> bool:
        """Whether slow proposals are made one at a time, so that other campaigns come in between."""
        return self.is_slow and self.batch_size == 1

    def prepare(self, campaign: Campaign, states: Iterable[Hashable]) -> None:
        """Make what has to be there before anybody is asked about these states of the sampler.

        Raises:
            EndpointError: it cannot be made. What was made before that is stored.
        """

    def discard(self, campaign: Campaign, stale: Collection[PrefetchedProposal]) -> None:
        """Delete prefetched proposals that nothing will come of."""
        PrefetchedProposal.objects.filter(pk__in=[each.pk for each in stale]).delete()

    def clean_up(self, campaign: Campaign) -> None:
        """Remove what a start that failed may have left."""
