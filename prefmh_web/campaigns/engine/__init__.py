"""The path of a vote: from a pair that is leased to somebody, to the verdict and the next pair.

Theory of operation
-------------------
All state lies in the database, and each call is one transaction of a few statements:

    leases.take        ->  a lease: one person is asked about one open comparison
    leases.answer      ->  a vote. It ends the lease, and may bring the verdict, the new head and the next
                           comparison, all in one transaction.
    leases.skip        ->  the lease ends, and somebody else may be asked

`voting/screens` puts `answer` and the next `take` into one transaction. Models have turns
(`campaigns/model_judges`); their votes are stored by the same `transitions`.

A vote counts once, and a step is decided once, because of three things, in one place each:

* Whoever casts a vote, decides a step, or gives or ends a lease locks the comparison's row first
  (`locks.py`). How it stands is read by a second statement, once the lock is there (`open_comparisons.on`). A
  lease may also be given as the comparison was seen before the lock, if nothing has changed since (`is_as_seen`).
* A vote's key is its lease's key, and unique. Sent again, it finds the vote that is stored.
* A chain's head moves only from the step before (`sql.ADVANCE`), and a chain has each step once.

Locks come in one order: the comparison or the chain, its leases, the annotator, the campaign. Whoever looks for a pair
passes over those that others hold. What follows from a vote outside of the database is sent after the commit
(`campaigns/dispatch.py`). It may be lost: a sweep finds whatever waits.

The files, in the order in which a vote meets them
--------------------------------------------------
    leases               take, answer, skip, expire: the life of a lease
    locks                begin, join and retry a transaction; a comparison under its lock; claims, held meanwhile
    sql                  each statement by its name, rows as instances, what a vote changes as one statement
    open_comparisons     how a comparison stands, room for more votes, the next pair for somebody
    transitions          the only module that writes comparisons, votes, ratings and chain heads
    suspension           steps that are put aside after many skips or reports
    openings             chains that open while people wait
    usage                what asking models may cost and has cost
"""
