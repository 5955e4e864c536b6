"""The gothic style: dread, old stones, things that wait."""

from sampler.spaces.texts.grammar import Alternatives

GOTHIC: dict[str, Alternatives] = {
    "gothic": [
        "{gothic_open} {gothic_air} {gothic_close}",
        "{gothic_open} {gothic_thing} {gothic_mind} {gothic_close}",
        "{gothic_open} {gothic_air} {detail} {gothic_mind} {gothic_close}",
        "{gothic_open} {detail} {gothic_air} {gothic_thing} {gothic_mind} {gothic_close}",
        "{gothic_open} {gothic_air} {gothic_speech} {gothic_part}",
        "{gothic_first} {gothic_open} {gothic_thing} {gothic_reply} {gothic_close}",
        "{gothic_open} {gothic_mind} {gothic_speech} {gothic_reply} {gothic_part}",
        "{gothic_open} {gothic_air} {detail} {gothic_speech} {gothic_reply} {gothic_part}",
    ],
    "gothic_open": [
        "[No bell tolled|No dog barked|No hand was raised in warning|The very crows fell silent] when, {when}, {who} "
        "{event}.",
        "{^when}, with the [cold|silence|memory of the dead] lying close upon {setting}, {who} {event}.",
        "It was {hour} when {who} {event}, and [something that had slept a long while turned over|the shadows drew "
        "themselves up to see|those who loved {him} felt, wherever they were, a sudden chill].",
        "They will tell you, [in whispers|if you press them|when the fire is low], that, {when}, {who} {event}, and "
        "that "
        "{he} was [never again seen to smile|already, in some manner, dead|not alone].",
        "There is a kind of [dread|darkness|hunger] that [knows us by name|waits without impatience|is older than "
        "prayer], and it was watching when {who} {event}.",
        "{^when}, {who} {event}, and from that hour [no fire could warm {him}|the mirrors in {his} house were turned "
        "to "
        "the wall|{he} was accompanied].",
    ],
    "gothic_air": [
        "A smell of {smell} [rose as from an opened vault|hung in the air like an old accusation|came and went, as if "
        "something nearby were breathing].",
        "{^setting} [lay under a silence like a shroud|had the pallor of a thing long drowned|seemed to lean nearer "
        "each time {he} looked away], and there was nothing to hear but {sound}.",
        "Beneath {sound} there was [another sound|a second, slower rhythm], [patient and unspeakably soft|like "
        "fingernails on silk|like a name repeated by many mouths], and it [kept time with {his} heart|ceased whenever "
        "{he} held {his} breath|did not come from any one place].",
        "Shadows [gathered|pooled|thickened] about {setting} [like mourners|as blood gathers about a wound|with a "
        "terrible gentleness], and the cold carried [a taint|a hint|an unclean memory] of {smell}.",
    ],
    "gothic_thing": [
        "{^thing} [was cold as a dead hand|seemed to drink what light there was|bore the marks of fingers, pressed "
        "deep, as if in terror], and {he} could not [look away|bring {himself} to turn {his} back upon it|shake the "
        "belief that it was listening].",
        "Upon {thing} [a stain was spreading, slow and dark, in the shape of a face|some hand had scratched a cross, "
        "and some other had scratched it out|there lay a film of grave-pale dust, and in the dust {his} own name], and "
        "{he} [dared not touch it|felt the hair rise upon {his} neck|could have wept for fear].",
        "Whatever had touched {thing} before {him} had [left a warmth upon it, like that of a sleeper lately risen|not "
        "been living|wept], and {he} [shuddered|crossed {himself}|felt {his} mouth go dry].",
    ],
    "gothic_mind": [
        "{^he} had dreamed of this, [night upon night|since childhood|in the worst of {his} fevers], and always the "
        "dream "
        "[ended in the same scream|closed over {him} like water|broke off at the moment when {he} turned around].",
        "A terror [older than reason|without a face|that was almost a longing] [laid its fingers upon {his} throat|"
        "climbed the stair of {his} spine|opened in {him} like a black flower], and still {role} did not flee.",
        "There was a [curse|madness|shadow] in {his} blood, it was said, [come down from a great-grandmother who "
        "walked|for which three brothers had been buried|that woke but once in a generation], and now {he} felt it "
        "[stir|smile|lift its head].",
        "{^role} told {himself} that [the dead do not return|it was only the wind|there was nothing there], and "
        "[something in the silence laughed|every stone seemed to deny it|the lie was like ash in {his} mouth].",
    ],
    "gothic_first": [
        "“{line},” [whispered|breathed] {other}, [and made the sign against evil|and would say no more, then or ever|"
        "before the candle failed].",
        "“{line},” said {other}, [in a voice like earth falling on wood|with eyes as pale as milk|smiling at something "
        "no one else could see].",
    ],
    "gothic_speech": [
        "“{line},” [whispered|murmured|breathed] {other}, [in a voice like earth falling on wood|whose lips had hardly "
        "moved|as one speaks in the chamber of the dying|and did not blink].",
        "Out of the gloom came {other}, [pale as tallow|wild-eyed|in black to the chin], and said, “{line}.”",
        "“{line},” said {other}, and [the flame of every lamp bent low|the cold came a step nearer|somewhere a door "
        "closed that had not been open].",
    ],
    "gothic_reply": [
        "“{gothic_answer},” {he} answered, [and heard {his} own voice come back to {him} changed|though {his} lips "
        "were white|and the shadows seemed to incline their heads].",
        "“{gothic_answer},” said {role}, [and wished the words unspoken|with one hand at {his} throat|not daring to "
        "look behind {him}].",
    ],
    "gothic_answer": [
        "Then pray for me, if there is anyone who still hears you",
        "I have heard it calling since I was a child",
        "The dead have never harmed me as the living have",
        "God forgive me, I cannot turn away",
        "I saw its face, and it was mine",
        "It has already been inside the house",
        "Do not speak that name here",
        "I buried it with my own hands",
        "Something followed me to this place, and it is tired of following",
        "Then it is true, and I am damned",
    ],
    "gothic_part": [
        "{^oth} [gave a low and dreadful laugh|wept without a sound|seized {him} by the wrist with fingers like ice], "
        "and [far beneath them something answered|{he} saw that {other_he} cast no shadow|the last of the light went "
        "out].",
        "Neither spoke again, for [between them, now, there stood a third|{sound} had stopped|the stones themselves "
        "had begun to weep].",
        "When {he} looked again, {oth} was [gone, and no footprint marked the place|an arm’s length nearer, and had "
        "not moved|staring past {him}, in horror].",
    ],
    "gothic_close": [
        "And [behind {him}|above {him}|very near], [softly, a voice spoke {his} name|something drew a long, contented "
        "breath|a small cold hand slipped into {his} own].",
        "Too late {he} understood that [the silence had been a mercy|{he} had been invited|it had let {him} come].",
        "By morning there would be [one grave more|a fresh stone with no name upon it|a great deal of blood to wash "
        "away], and {he} would [remember nothing|be blamed for none of it, which was worse|envy the dead].",
        "[Thus|So] began the [haunting|ruin|long night] of {role}, and [it is not over|there are those who hear it "
        "still|God alone knows where it will end].",
        "{^he} should have [fled|prayed|burned it all] then; instead, {he} [smiled|took one step into the dark|"
        "listened, and the listening was a kind of answer].",
    ],
}
