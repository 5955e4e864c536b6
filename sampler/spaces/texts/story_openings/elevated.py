"""The elevated style: long periods, abstract nouns, a narrator who has read a good deal."""

from sampler.spaces.texts.grammar import Alternatives

ELEVATED: dict[str, Alternatives] = {
    "elevated": [
        "{elevated_open} {elevated_air} {elevated_close}",
        "{elevated_open} {elevated_mind} {elevated_thing} {elevated_close}",
        "{elevated_open} {elevated_air} {detail} {elevated_mind} {elevated_close}",
        "{elevated_open} {elevated_air} {elevated_thing} {detail} {elevated_mind} {elevated_close}",
        "{elevated_open} {elevated_air} {elevated_speech} {elevated_part}",
        "{elevated_first} {elevated_open} {elevated_mind} {elevated_reply} {elevated_close}",
        "{elevated_open} {elevated_mind} {elevated_speech} {elevated_reply} {elevated_part}",
        "{elevated_open} {detail} {elevated_air} {elevated_speech} {elevated_reply} {elevated_part}",
    ],
    "elevated_open": [
        "There are hours that [belong to no day|seem lent to us rather than given|the calendar does not acknowledge], "
        "and it was in such an hour, {when}, that {who} {event}.",
        "It has been [observed|remarked|said, and not by the young alone,] that fortune [prefers the unready|announces "
        "itself in a low voice|keeps no appointments]; and so it proved, {when}, when {who} {event}.",
        "{^when}, while the rest of the world was [occupied with its small and necessary affairs|content to leave "
        "every question where it lay|faithful to its habits], {who} {event}.",
        "Of all the [follies|accidents|turnings] by which a life may be [altered|undone|redeemed], none is so [quiet|"
        "slight|easily forgiven] as the one that befell {who}, who, {when}, {event}.",
        "Let it be set down, [plainly and in order|without ornament|before memory can improve upon it], that, {when}, "
        "{who} {event}, "
        "and that {he} did so [in full possession of {his} reason|with no thought of consequence|as one obeys a "
        "summons long foreseen].",
        "Long afterwards, when {he} had [outlived the need to be believed|grown accustomed to being asked|learned how "
        "little of a life is chosen], {role} would maintain that nothing had been decided until the hour, {when}, in "
        "which {he} {event}.",
    ],
    "elevated_air": [
        "The air, heavy with the smell of {smell}, had that [peculiar|grave|translucent] stillness which [precedes "
        "either rain or "
        "revelation|one associates with libraries and with snow|the old painters reserved for annunciations].",
        "{^setting} [wore the composure of a place that has outlasted its purpose|presented to the eye that noble "
        "indifference which only neglect confers|seemed less to stand there than to be remembered there], and no voice "
        "contended with {sound}.",
        "To {sound} was added, by slow degrees, [that deeper silence in which the mind hears itself|the sense of an "
        "attention not {his} own|a stillness so entire that it seemed composed], and {he} [surrendered to it as to "
        "music|felt the years fall quiet within {him}|was in no haste to disturb it].",
        "Such light as there was lay upon {setting} with [the tenderness of long acquaintance|the impartiality of a "
        "just sovereign|something of the mercy that is shown to ruins], and the scent of {smell} [rose like a "
        "recollection|completed the melancholy of the scene|hung there as incense hangs].",
    ],
    "elevated_thing": [
        "{^thing} [commanded the eye|drew {his} regard], as certain objects will that have [been long in the company "
        "of human sorrow|survived every hand that prized them|no need of being beautiful].",
        "In the aspect of {thing} there was [nothing to astonish and everything to detain|an eloquence which no "
        "inscription could have bettered|something at once humble and inexorable], and {he} regarded it [as one "
        "regards a page in a forgotten tongue|with the reverence that is owed to the inexplicable|for longer than "
        "prudence would have counseled].",
        "{^he} considered {thing} with [that courtesy which the solitary extend to things|the patience of an "
        "astronomer|an emotion too old to have a name], and it seemed to {him} that [the consideration was returned|it "
        "had been waiting for precisely such a witness|all {his} wandering had tended hither].",
    ],
    "elevated_mind": [
        "{^role} possessed, among [other virtues of small market value|many gentler failings], a [fidelity|curiosity|"
        "melancholy] that [neither years nor reason had been able to correct|had cost {him} dearly and instructed "
        "{him} "
        "well|lay upon {his} character like a watermark, visible only against the light].",
        "There was that in {his} nature which [inclined toward the unanswerable as a vine inclines toward the wall|had "
        "always preferred the question to its reply|could not look upon a threshold without longing], and {he} did not "
        "now [resist it|reproach it|deny it its hour].",
        "{^he} had supposed {himself} [proof against wonder|done with expectation|reconciled to the ordinary], and was "
        "[chastened|almost grateful|obscurely moved] to discover how [slender that armor was|imperfectly the lesson "
        "had been learned|readily the heart resumes its apprenticeship].",
        "Memory, that [courteous thief|unfaithful steward|most partial of historians], now [laid before {him}|restored "
        "to {him}|returned, unbidden,] [a summer long since spent|the cadence of a voice long silent|a promise made "
        "beside another and kinder hearth].",
    ],
    "elevated_first": [
        "“{line},” {other} was heard to say, [and the words outlived the occasion|with a solemnity that no one present "
        "was disposed to question|in the tone of one who reads from an ancient decree].",
        "“{line},” said {other}, and [history, which begins in smaller remarks, began|there the matter might have "
        "rested, had the world been a more incurious place].",
    ],
    "elevated_speech": [
        "“{line},” observed {other}, [with the gravity of an oracle that has known disappointment|in accents both "
        "grave and gentle|as though the remark had been long in preparation].",
        "“{line},” said {other}, whose [countenance betrayed neither hope nor apology|voice had the worn music of a "
        "thing much used|manner suggested that the matter had been settled elsewhere].",
        "It was then that {other} [inclined {other_his} head|broke the silence|lifted a hand, as if to bless or to "
        "forbid,] and pronounced these words: “{line}.”",
    ],
    "elevated_reply": [
        "“{elevated_answer},” {he} replied, [and was surprised to find it true|not without a certain sorrow|with a bow "
        "that belonged to another age].",
        "“{elevated_answer},” returned {role}, [for whom candor was the last of luxuries|measuring each word as one "
        "measures a medicine|and the sentence hung between them like a lamp].",
    ],
    "elevated_answer": [
        "I have been a stranger to comfort too long to begin requiring it",
        "Then let us be worthy of the inconvenience",
        "One does not refuse a summons merely because it is unsigned",
        "I had hoped for an answer, and must be content with a mystery",
        "There are errands that choose their bearer",
        "What is lost to the hand is not therefore lost",
        "I ask for no assurance, only for a little light",
        "It would be a poor sort of wisdom that never went to see",
        "You speak as though the choice were still before us",
        "Even so, I should prefer to be mistaken in good company",
    ],
    "elevated_part": [
        "{^oth} made no rejoinder, and in that forbearance {role} perceived [a kindness|a warning|the whole of a "
        "history] which [speech could only have diminished|{he} would be years in deciphering].",
        "Thus were two lives, [hitherto as separate as stars|which prudence would have kept apart|which no "
        "design had meant to join], [drawn into a single sentence|set upon one road|made answerable to each other].",
        "They regarded one another [across the silence|for the space of a breath], and {sound} [took up again its "
        "interrupted argument|said for them what remained to be said].",
    ],
    "elevated_close": [
        "Whatever [was to follow|the years might afterwards exact], [it was from this hour that {he} dated {his} true "
        "beginning|{he} would not have exchanged that hour for the peace of kings|it found {him}, at the last, not "
        "unwilling].",
        "Thus do [great sorrows|great changes|the long histories] enter the world: [unannounced, and by the servants’ "
        "door|with the modesty of snow|as guests who ask only to sit a while].",
        "And {he}, who had [asked so little of the world|trusted so long in the mercy of small things], now [stood "
        "upon the sill of everything|felt the great wheel stir|gave {his} consent, and was answered].",
        "It is [given to few|seldom permitted us] to know the hour in which our story turns; {he} [knew it, and did "
        "not look away|knew it as one knows a step upon the stair|knew it, and bowed {his} head].",
    ],
}
