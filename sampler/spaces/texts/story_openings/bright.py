"""The bright style: light of heart, fond of its people, a little absurd."""

from sampler.spaces.texts.grammar import Alternatives

BRIGHT: dict[str, Alternatives] = {
    "bright": [
        "{bright_open} {bright_air} {bright_close}",
        "{bright_open} {bright_mind} {bright_thing} {bright_close}",
        "{bright_open} {bright_air} {detail} {bright_mind} {bright_close}",
        "{bright_open} {detail} {bright_thing} {bright_air} {bright_mind} {bright_close}",
        "{bright_open} {bright_mind} {bright_speech} {bright_part}",
        "{bright_first} {bright_open} {bright_air} {bright_reply} {bright_close}",
        "{bright_open} {bright_air} {bright_speech} {bright_reply} {bright_part}",
        "{bright_open} {bright_mind} {detail} {bright_speech} {bright_reply} {bright_part}",
    ],
    "bright_open": [
        "{^when}, [in the best of tempers|humming a tune with no end to it|with {his} coat buttoned wrong|full of good "
        "intentions], {who} {event}.",
        "{^who} {event}, {when}, and [felt better for it at once|it served {him} right, as {he} was the first to admit|"
        "nobody could have been more delighted].",
        "It was {hour} when {who} {event}, and the world, [as it sometimes will|for once|against all expectation], "
        "seemed to be in [an excellent|a generous|a forgiving] mood.",
        "[Three good things|Two odd things and one good one|Several small wonders] happened that week, and the [first|"
        "best|last] of them was that {who} {event}.",
        "[It is a well-known fact|Everybody agrees|The whole neighborhood will tell you] that, {when}, {who} {event}, "
        "[though no two people agree on the hat {he} wore|and nobody tells it without laughing|and every year the "
        "story grows a little].",
        "Nothing [whatever|much|out of the way] had been planned for that day, which is [why|no doubt how it came "
        "about that|perhaps the reason] {who} {event}.",
    ],
    "bright_air": [
        "The air smelled of {smell}, and [it was all {he} could do not to skip|even {his} hat seemed to sit more "
        "lightly|any fool could tell that something nice was coming].",
        "Over everything came {sound}, [as cheerful as a kettle|like applause from a small, loyal audience|and {he} "
        "found {he} was keeping time with one foot].",
        "{^setting} had [never looked better|put on its best face|the look of a place about to be surprised], and "
        "smelled [gloriously|cheerfully|quite unreasonably] of {smell}.",
        "Somewhere [a bird|a child|a clock with no sense of time] [struck up a song|was practicing scales|announced "
        "that all was well], and {setting} [seemed to listen|took it as a compliment|did not object].",
    ],
    "bright_thing": [
        "{^thing} [shone as if it had been expecting company|looked, if such a thing is possible, pleased with itself|"
        "had plainly been waiting all its life for somebody to laugh at it], and {he} [bowed to it|wished it good "
        "luck|took to it at once].",
        "{^he} [walked twice around|smiled at|tipped {his} hat to] {thing}, [which seemed only polite|and felt certain "
        "it smiled back|because one has to begin somewhere].",
        "As for {thing}, it was [precisely|almost exactly|very nearly] the [silliest|loveliest|most promising] thing "
        "{he} had seen [since {his} birthday|all year|in a life not short of them].",
    ],
    "bright_mind": [
        "{^role} had [two clean handkerchiefs|half a sandwich|a pocketful of string|one good joke] and no worries at "
        "all, which {he} considered [a fair beginning|riches enough|the right way round].",
        "{^he} had once been told that [curiosity was a kind of courage|it is never too late for breakfast|luck is "
        "mostly good manners|a good day can start at any hour], and had [believed it ever since|lived by it with great "
        "success|found it true more often than not].",
        "{^role} was the sort of {person} who [thanked doors for opening|apologized to furniture|waved at trains], and "
        "[good things tended to find {him}|people forgave {him} a great deal|it made the days longer in the best "
        "way].",
        "Being sensible had [never agreed with {him}|been tried and found wanting|its place, and that place was "
        "Monday], so {role} [laughed out loud|did a small dance|decided to be delighted].",
    ],
    "bright_first": [
        "“{line}!” cried {other}[|, waving both arms|, quite out of breath].",
        "“{line}!” announced {other}, [as if it were the best news in the world|to anyone who would listen|and dropped "
        "a spoon].",
    ],
    "bright_speech": [
        "“{line}!” cried {other}, [beaming|waving both arms|and then, remembering {other_his} manners, bowed|who never "
        "could keep a thing to {other_him}self].",
        "{^other} [popped up beside {him}|came hurrying over|arrived, pink in the face], and said in one breath, "
        "“{line}!”",
        "“{line},” [confided|explained|declared] {other}, [with a wink|with enormous satisfaction|who had clearly been "
        "saving it up].",
    ],
    "bright_reply": [
        "“{bright_answer}!” {he} said, [and meant every word|laughing|offering an arm].",
        "“{bright_answer},” said {role}, [who was never at a loss|with {his} best smile|because it seemed the friendly "
        "thing to say].",
    ],
    "bright_answer": [
        "Then we must have cake",
        "I was hoping you would say that",
        "What a perfectly splendid muddle",
        "I wouldn’t have missed it for the world",
        "Let us be quick, before somebody sensible comes",
        "Well, that is the nicest thing I have heard all day",
        "I knew I should have worn the other hat",
        "Lead on, and mind the puddles",
        "It sounds like just the thing",
        "In that case I shall need both hands",
    ],
    "bright_part": [
        "{^oth} [clapped {other_his} hands|laughed until {other_he} had to sit down|shook {his} hand for rather too "
        "long], and [so it was settled|from that moment they were friends|off they went].",
        "They [shook hands on it|agreed on everything but the details|laughed at the same moment], which is [how the "
        "best things start|as good as a contract|more than most people manage in a year].",
        "By the time {oth} had [found {other_his} gloves|got {other_his} breath back|finished explaining], {role} had "
        "[made up {his} mind to stay|a plan|thought of three names for the adventure].",
    ],
    "bright_close": [
        "[So|And so|Naturally,] {he} rolled up {his} sleeves and [began|set about finding out|hoped for the best].",
        "Before the day was out there would be [cake|music|a parade of sorts|a small explosion], and [nobody, least of "
        "all {role}, would have had it otherwise|every bit of it would be {his} fault|the neighbors would bring "
        "chairs].",
        "It was, {he} decided, going to be [a very good year|the kind of day one keeps|much more fun than it looked].",
        "{^he} [took a deep breath|gave a little cheer|crossed {his} fingers], and the [adventure|story|whole "
        "wonderful business] [began|said good morning|took {him} by the hand].",
    ],
}
