"""The plain style: short words, facts first."""

from sampler.spaces.texts.grammar import Alternatives

PLAIN: dict[str, Alternatives] = {
    "plain": [
        "{plain_open} {plain_air} {plain_close}",
        "{plain_open} {plain_thing} {plain_mind} {plain_close}",
        "{plain_open} {detail} {plain_mind} {plain_air} {plain_close}",
        "{plain_open} {plain_air} {detail} {plain_mind} {plain_thing} {plain_close}",
        "{plain_open} {plain_air} {plain_speech} {plain_part}",
        "{plain_open} {plain_mind} {plain_speech} {plain_reply} {plain_part}",
        "{plain_first} {plain_open} {plain_thing} {plain_reply} {plain_close}",
        "{plain_open} {detail} {plain_air} {plain_speech} {plain_reply} {plain_part}",
    ],
    "plain_open": [
        "{^when}, {who} {event}[|, and that was the whole of the news that day|, and told nobody for a week].",
        "{^who} {event}[, and nobody saw {him} do it|, on a day when nothing else happened|, and did not write home "
        "about it].",
        "It was {hour} when {who} {event}[|, and everybody was looking elsewhere|, sooner than anyone had planned].",
        "In the week [that the bridge was closed|after the long rain|before the holiday|that the clocks were changed], "
        "{who} {event}.",
        "[Most people|Other people] would have [waited for company|gone home|slept on it first|asked somebody], but "
        "{who} was alone when {he} {event}.",
        "[Later|Afterwards|Years later], people asked how it came about that {who} {event}, and {he} "
        "[never had a good answer|told each of them something different|said only that it had been {when}].",
    ],
    "plain_air": [
        "The air smelled of {smell}[|, as it did every year at that season|, and of something else {he} could not "
        "name|, and it was [colder|warmer] than it had been].",
        "[For a while|For some minutes|At first] there was [nothing to hear but|no sound but|only] {sound}.",
        "It had been a [dry|wet|cold|slow|bad] [month|week|season], and {setting} [showed it|was the worse for it|"
        "looked smaller for it|was quieter than usual].",
        "{^setting} was [colder|quieter|smaller|emptier] than {he} [liked|had been told|had hoped], and it smelled of "
        "{smell}.",
        "[Nothing moved|Nothing changed|Nobody came], and after a time {he} stopped [noticing|hearing] {sound}.",
    ],
    "plain_thing": [
        "{^thing} was [smaller|older|plainer|dirtier|cleaner] than {he} [had expected|had been told|would have liked].",
        "{^he} looked at {thing} [for a full minute|twice|until {his} eyes watered|the way {he} looked at bills] and "
        "then [did nothing|looked at {his} own hands|counted to ten|let out {his} breath].",
        "There was [a scratch|a thumbprint|a little mud|a chalk mark|a spot of wax] on {thing}, [still fresh|no longer "
        "than a finger|where nobody would think to look|and {he} rubbed at it without knowing why].",
        "Nothing about {thing} [was out of the ordinary|called for a second look|should have worried anyone], [and "
        "that was what worried {him}|but {he} gave it a second look|and still {he} kept {his} distance].",
    ],
    "plain_mind": [
        "{^he} had [slept badly|eaten nothing since the day before|meant to be elsewhere by now|been on {his} feet too "
        "long], and [{his} back hurt|{he} was too tired to be afraid|small things were beginning to annoy {him}|{he} "
        "was in no mood for surprises].",
        "{^role} was not a [brave|curious|lucky|patient] {person}, but {he} [wanted to know|disliked leaving a thing "
        "half done|had been taught to finish what {he} started|could not abide a loose end].",
        "{^he} thought of [{his} mother|{his} grandfather|an old neighbor|{his} first teacher], who used to say that "
        "[nothing good came of hurry|luck was mostly a matter of arriving early|a closed door was still a door|people "
        "could get used to anything].",
        "If {role} was [afraid|surprised|sorry], it [did not show|showed only in {his} hands|passed quickly|would have "
        "to wait].",
        "{^role} [went over|counted] the [reasons|facts] [once more|on {his} fingers|in {his} head], and there were "
        "[fewer|more] of them than {he} had thought.",
    ],
    "plain_first": [
        "“{line},” said {other}[|, to no one in particular|, for the second time].",
        "“{line},” {other} said, and [nobody laughed|went on saying it all that week|that was the start of it].",
    ],
    "plain_speech": [
        "“{line},” said {other}[|, as if that settled it|, who had come up behind {him}|, looking at the ground].",
        "{^other} [came up beside {him}|stood a little way off|gave {him} a nod|cleared {other_his} throat] and said, "
        "“{line}.”",
        "“{line},” {other} told {him}[|, [quietly|flatly|kindly]|, and seemed to mean it|, not for the first time].",
    ],
    "plain_reply": [
        "“{plain_answer},” {he} said[|, and waited for more|, and it was nearly true|, keeping {his} voice down].",
        "{^role} [shrugged|nodded|thought about it|took {his} time] and said, “{plain_answer}.”",
        "“{plain_answer},” {role} answered[|, more sharply than {he} meant to|, when {he} could].",
    ],
    "plain_answer": [
        "I only want to see it for myself",
        "Somebody has to look",
        "I was told something different",
        "Then we had better be quick about it",
        "I won’t be long",
        "I don’t know yet",
        "It can’t be helped now",
        "Let me think a minute",
        "I never asked for this",
        "I have heard worse",
        "That is not what I remember",
        "I would rather know than not",
    ],
    "plain_part": [
        "{^oth} [looked away|shook {other_his} head|gave a short laugh|said nothing more], and [that was all the help "
        "{he} would get|they stood there a while, the two of them|{he} knew {he} had heard only half of it].",
        "They [did not speak of it again|waited side by side|listened to {sound}] until [it was time to go|one of "
        "them had to sit down|the cold got the better of them].",
        "{^he} [believed {other_him}|thanked {other_him}|did not believe {other_him}], and that was [{his} first "
        "mistake|how it began|the end of the easy part].",
    ],
    "plain_close": [
        "{^he} decided to give it [ten minutes|an hour|until {his} feet went numb] and not a [minute|moment] more.",
        "That was how it began, and [the rest took eleven years|nobody has told it right since|most of what followed "
        "was {his} own doing|it went on until spring].",
        "{^he} took [a breath|one step closer|off {his} gloves] and [began|put out a hand|called out, once|started to "
        "count].",
        "Before [the week|the month|the year] was out, everyone [for ten miles around|{he} knew|who mattered] would "
        "have heard[|, and most would have it wrong|, though not from {him}].",
        "{^he} did not know it yet, but {he} had [already made the mistake|seen the only sign {he} would get|less than "
        "an hour left|done the hard part].",
    ],
}
