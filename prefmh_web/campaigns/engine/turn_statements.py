"""The statements on the path of a model's turn, beside those of a vote (`statements.py`).

    JUDGE            a judge that is to be asked, its endpoint, and whether its campaign has a cap
    TURN             the judge's turn on a comparison
    IDENTITIES       whose replies count as the judge's
    SLOTS            which of its votes there are
    TAKE, GIVE_UP    a turn that is claimed, and one that is over

All of them find their rows by a key or by the index of a foreign key.
"""

from prefmh_web.campaigns.engine.rows import Columns
from prefmh_web.campaigns.engine.statements import Statement
from prefmh_web.campaigns.models import Judge, ReplyIdentity, Turn
from prefmh_web.endpoints.models import Endpoint

OF_JUDGE, OF_ENDPOINT = Columns(Judge, "j"), Columns(Endpoint, "e")
OF_TURN, OF_IDENTITY = Columns(Turn, "t"), Columns(ReplyIdentity, "i")

JUDGE = Statement(
    f"""
    SELECT {OF_JUDGE.sql}, {OF_ENDPOINT.sql}, m.cost_cap IS NOT NULL OR m.request_cap IS NOT NULL
    FROM campaigns_judge j JOIN endpoints_endpoint e ON e.id = j.endpoint_id
    JOIN campaigns_campaign m ON m.id = j.campaign_id
    WHERE j.id = %s AND j.campaign_id = %s AND j.stopped_because = ''
    """
)
TURN = Statement(f"SELECT {OF_TURN.sql} FROM campaigns_turn t WHERE t.comparison_id = %s AND t.judge_id = %s")
IDENTITIES = Statement(
    f"SELECT {OF_IDENTITY.sql} FROM campaigns_replyidentity i WHERE i.judge_id = %s AND i.accepted_at IS NOT NULL"
)
SLOTS = Statement("SELECT v.slot FROM campaigns_vote v WHERE v.comparison_id = %s AND v.judge_id = %s")
_CLAIMED = ("asked", "state_id", "until", "reason", "since", "reserved_requests", "reserved_cost")
TAKE = Statement(
    f"""
    INSERT INTO campaigns_turn (comparison_id, judge_id, {", ".join(_CLAIMED)})
    VALUES (%s, %s, {", ".join(["%s"] * len(_CLAIMED))})
    ON CONFLICT (comparison_id, judge_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _CLAIMED)}
    """,
    returning="id",
)
GIVE_UP = Statement("DELETE FROM campaigns_turn WHERE id = %s AND until = %s AND asked > 0")
