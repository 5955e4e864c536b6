"""People of the tests, who vote through real sockets."""

from dataclasses import dataclass, field

from prefmh_web.demo.voters import Voter


@dataclass
class CarefulVoter(Voter):
    """A voter who notes each vote once the server has answered it: those the person has seen acknowledged."""

    acknowledged: list[str] = field(default_factory=list)

    async def _decide(self, screen):
        # The page answers a vote with another screen; with the same pair again it has not been read yet.
        if self.sent and screen.values.get("lease") != self.sent[-1] and self.sent[-1] not in self.acknowledged:
            self.acknowledged.append(self.sent[-1])
        return await super()._decide(screen)


class AnyScore(dict):
    """Hidden scores for whatever is asked: what takes longer to say is liked a little more."""

    def __missing__(self, question: str):
        return lambda content: len(content) / 50
