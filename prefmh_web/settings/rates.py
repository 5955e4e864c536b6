"""How often somebody may do something, by name. The variable RATE_LIMITS replaces single ones; see `environment.py`."""

RATES = {
    # Passwords that were wrong: of one account from one place, of one account from anywhere, of any account from one
    # place. Whoever knows theirs is not counted. An hour of the first stays below the second: nobody can lock an
    # account everywhere from one place.
    "sign-in-name-here": "6/5 minute",
    "sign-in-name": "100/hour",
    "sign-in-address": "60/5 minute",
    # By address. A lecture hall behind one address joins at once, each person perhaps a few times.
    "join": "600/minute",
    # By annotator. Ten a second is a person in a great hurry; each vote may be sent twice.
    "votes": "150/10 second",
    # By annotator: pages that connect again and again.
    "sockets": "60/minute",
    # By researcher.
    "forms": "120/minute",
    # Of what a model would be sent, while one types.
    "previews": "240/minute",
    # By token of a program.
    "api": "1200/minute",
    # By address, with tokens that let nobody in. No token can be guessed; this spares the database.
    "api-refused": "120/minute",
}
# Counted in memory by each process for itself, so that a vote waits for no other server. A person whose pages are on
# several web processes may do it as often in each of them.
PER_PROCESS = frozenset({"votes"})
