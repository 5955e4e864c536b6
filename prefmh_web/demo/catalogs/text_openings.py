"""The demo's openings of stories: every scenario told in every style, written for this project."""

STYLES = ("plain", "cheerful", "uneasy", "gothic", "haunted")
"""How the columns of `OPENINGS` are told. Cheerful and haunted openings speak; the others only narrate."""

OPENINGS: dict[str, tuple[str, ...]] = {
    "inn": (
        "The last bus put me down at the crossroads a little after midnight, two miles short of the village. There was "
        "one inn on the road, a square brick building with its chairs already stacked on the tables. I knocked, "
        "waited, read the menu twice by the light of my phone, and knocked again.",
        "“We stopped serving at nine,” said the woman at the door, looking at my boots, my rucksack and the rain, in "
        "that order. Then she sighed, took the chain off and put the kettle on. “You can have soup, toast and the room "
        "over the kitchen, and you can tell me what sort of person walks the ridge in October.”",
        "It was past midnight when I found the inn, and the door stood open as though someone had just gone out to "
        "look for me. A fire was burning in the bar. On the counter lay one key, one candle and the guest book, turned "
        "to today’s page, with my name already written there in a neat, slanting hand.",
        "Midnight had struck before I came, half dead with cold, to that black and solitary inn upon the moor, whose "
        "gables leaned together like mourners at a grave. No lamp burned. Yet as I laid my hand upon the iron ring the "
        "door swung inward without a sound, and out of the darkness came a breath of lilies and damp earth.",
        "“You are the first to come since they nailed the shutters,” whispered the old man, raising his candle until "
        "its trembling light found my face. Behind him the stair climbed into a darkness that smelt of dust and dying "
        "flowers. “There is one bed left, sir, and I pray you will not ask who had it before.”",
    ),
    "lighthouse": (
        "The job came with a bicycle, a radio and four hundred tins of soup. Every evening Ines climbed the hundred "
        "and eighty steps to the lamp, cleaned the glass and wrote the weather in the log, though the light had run "
        "itself for years. By the second week she could do it without stopping for breath.",
        "“It turns by itself,” the old keeper told me, patting the great brass lamp as if it were a cow. “All you have "
        "to do is write down the weather, wave at the fishing boats, and not fall down the stairs.” He had fallen down "
        "them twice, he added, but only because he was waving.",
        "There were always two of us at the light: I took the watch until four, and Mr Hale took it until dawn. On my "
        "ninth night I woke early and went up to keep him company, and found the lamp tended, the log filled in and "
        "the chair still warm. From the window I could see him far below, walking up from the boat that had taken him "
        "to the mainland on Friday.",
        "For nine nights the storm had beaten upon the tower, and for nine nights I had kept the flame alone, as the "
        "dead keeper kept it before me. His oilskins hung behind the door, dripping, though no one had worn them since "
        "the burial. Each midnight, between one sweep of the beam and the next, a pale figure stood upon the rocks and "
        "raised its lantern in reply.",
        "“Put out the light,” the voice begged from the foot of the stair, as it had begged every night since the "
        "wreck. I pressed my hands to my ears and watched the great lamp turn, sweeping its cold white arm over the "
        "graves of the drowned. “Put it out,” it said, nearer now, “and let us come home.”",
    ),
    "inheritance": (
        "My great-aunt left me a house I had never seen and a key that did not fit it. The solicitor thought this was "
        "funny; my sister thought it was typical. I took the Tuesday off, bought a crowbar and a sandwich, and drove "
        "north with the key on the passenger seat.",
        "“She left you the house, the hens and the overdraft,” said the solicitor, sliding a muddy key across the "
        "desk. I asked him how many hens. He turned over three pages, took off his glasses and rubbed his eyes. "
        "“Nobody has ever been able to say, Mr Okafor, but they are expecting you.”",
        "The house my great-aunt left me was cleaner than mine. Somebody had swept the hall, wound the clocks and put "
        "milk in the refrigerator, and on the kitchen table stood two cups, one of them half full and not quite cold. "
        "The neighbours agreed, when I asked them, that nobody had lived there for eleven years.",
        "They gave me the keys of Harrow End upon the day we buried her, and at dusk the coach left me before its "
        "rusted gates. Ivy had blinded every window. Above the door, where the family’s crest had crumbled, a stone "
        "skull kept watch over the rotting steps, and somewhere within, though the last of us stood shivering without, "
        "a bell began to toll.",
        "“Your aunt asked that the east wing never be opened,” said the housekeeper, and she laid the ring of keys in "
        "my palm as though it burned her. There were thirteen; the last was wrapped in a shred of black lace. “She "
        "asked it again last night, miss, through the wall, though we had put her in the crypt on Monday.”",
    ),
    "train": (
        "The 18.40 stopped between two fields of barley and did not start again. After ten minutes people began to "
        "talk to each other, and after twenty a man in a grey suit passed round a bag of cherries. Ruth, who had taken "
        "this train for six years, learned the names of everyone in the carriage before the lights of Crewe came into "
        "view.",
        "“Is this Wexcombe?” asked the boy with the trombone, and the whole carriage looked out at the empty platform, "
        "the single lamp and the donkey. Nobody knew. “It says Wexcombe on the donkey,” said an old lady by the "
        "window, and so we all got off.",
        "The train stopped at a station that was not on the map above my seat. No doors opened and nobody got on, but "
        "when we moved off again the woman opposite me had gone, and her book lay open in her place with its pages "
        "still turning. I picked it up to see how far she had got, and it was the story of a woman on a train.",
        "It was in the dead of winter that the night express halted, with a shriek of iron, at a platform the snow had "
        "buried to its lamps. Nothing stirred. Then through the frost upon the glass I saw them waiting in their "
        "ranks, pale and hollow-eyed, dressed in the mourning of another century, and every one of them held out a "
        "ticket to me in a bloodless hand.",
        "“You must not step down here, whatever calls to you,” said the conductor, drawing the black curtain across "
        "the window with shaking hands. Outside, a bell tolled over the buried village, and something scratched softly "
        "along the carriage door. “They all died waiting for this train,” he murmured, “and tonight, God forgive us, "
        "we are on time.”",
    ),
    "library": (
        "On Monday morning the returns box held a book that had been due in March 1961. It was a guide to pond life, "
        "in good condition, with a bus ticket at page ninety. Samir worked out the fine on the back of an envelope, "
        "laughed, and decided to find the reader and give the ticket back.",
        "“I’d like to return this,” said the man at the desk, and he put down a book on pond life with a duck on the "
        "cover. It was sixty-two years late. “I was eight,” he explained, going red, “and then I was busy, and then I "
        "was ashamed.” Nadia stamped it, found him another on newts, and told him to take his time.",
        "Every night I shelve the same book, and every morning it is back on my desk. It has no author and no stamp, "
        "only a list of dates in brown ink, each with a surname beside it. I had stopped noticing it, as one does, "
        "until this morning, when the last line was still wet, and the date was Thursday, and the surname was mine.",
        "Beneath the abbey lay a library that the monks had walled up with their own abbot inside it, and I, in my "
        "pride, had broken the seal. My candle shrank from that tomb-cold air. Shelf rose above shelf into the "
        "shadows, bound in what I prayed was leather, and from the farthest desk, where a skeleton sat bowed over its "
        "page, came the patient scratching of a pen.",
        "“Do not read it aloud,” cried the librarian, and her lamp shook so that our shadows leapt about the vault "
        "like things let out of a cage. But I had already spoken the first line. Far down in the stacks a chain fell, "
        "and a voice grown hoarse with centuries of silence said, “Go on.”",
    ),
    "ferry": (
        "The last ferry of the season carried eleven passengers, a crate of lettuces and a cello. Halfway across, the "
        "engine coughed and stopped, and the pilot went below with a torch between his teeth. We drifted for an hour "
        "under a clear sky, and the girl who owned the cello was at last persuaded to play it.",
        "“One pound if you sit, two if you steer,” said the ferrywoman, who was eating a plum. I gave her two. The "
        "river was wide and brown and in no hurry, and by the middle of it she had shown me where the otters slept, "
        "which bank to trust, and how to spit a stone as far as the buoy.",
        "Seven of us got on the ferry, and the boy with the rope counted us twice. Halfway over, the fog came down so "
        "thick that I could see only the hands of the man beside me, folded on his stick. When the boy came round for "
        "the fares he counted again, frowned, counted on his fingers, and asked very politely which of us was the "
        "eighth.",
        "No bird sang upon that river, nor did the black water give back any star. The ferryman, hooded like a monk "
        "and silent as his own oars, had asked no fare of me but a lock of my dead wife’s hair. Slowly out of the mist "
        "the farther shore took shape, a grey waste of tombs and leafless trees, and there, amid the shadows, a white "
        "hand was beckoning.",
        "“Keep your hands inside the boat,” the ferryman warned, “for the drowned are lonely on All Souls’ Night.” I "
        "laughed, but the sound died in the fog. Beneath us the lanterns of the sunken village burned one by one, "
        "green and cold, and pale faces turned in the dark water to watch my shadow pass.",
    ),
    "piano": (
        "The piano in the school hall had not been tuned since the flood. Mr Adeyemi took off the front panel and "
        "found, in order, a mouse’s nest, eleven pencils, a medal for swimming and a love letter signed only with a "
        "drawing of a fish. He tuned the piano first, because he was a professional, and then sat down to read.",
        "“It only goes wrong when it is happy,” the child explained, and she played me a scale to prove it. The F "
        "sharp giggled. I have tuned pianos for thirty years, in hotels and prisons and once on a roof, but I put down "
        "my fork, pulled up the stool and said, “Show me again.”",
        "The letter asked me to come on the first Sunday of the month, tune the piano, take my fee from the plate and "
        "speak to nobody. I have done so for four years without meeting a soul in that house. Last Sunday every string "
        "was already in tune, the plate held twice the money, and a second stool had been drawn up very close to mine.",
        "In the shrouded music room of Castle Morrow stood an instrument as long and black as a coffin, and its keys "
        "were the yellow of old bone. I had been summoned to tune it for a bride who was three weeks in her grave. As "
        "the first chord faded among the cobwebs I heard above me, through the ceiling of the sealed chamber, the slow "
        "tread of someone beginning to dance.",
        "“She plays it every midnight,” said the widower, “and every midnight it is a little more out of tune.” His "
        "face in the candlelight was ghastly, and his black gloves were worn through at the fingers. “Mend it, I "
        "implore you, for when the last string breaks she will want another, and she has begun to look at my wrists.”",
    ),
    "dress": (
        "The dress had been made for a bride of 1952 and had to fit her granddaughter by Saturday. Magda unpicked the "
        "seams at the kitchen table, pinned the silk, and let out the waist by the width of a thumb. In the hem she "
        "found a threepenny bit, sewn in for luck, and she sewed it back exactly where it had been.",
        "“I want to be able to dance in it, eat in it and climb out of a window in it,” said the bride, standing on "
        "the table in her socks. Magda took the pins out of her mouth. “Which window?” she asked, and reached for her "
        "tape.",
        "The bride never came to be measured; she sent her figures on a card, a new one every week. The waist grew "
        "smaller, the sleeves grew longer, and by the end of May I was cutting silk for arms that would have reached "
        "my knees. On the first of June a note came to say that she would collect the dress herself, after dark, and "
        "that I should leave the skylight open.",
        "By the light of one guttering candle I sewed the wedding gown of Lady Ysolde, who had been dead a hundred "
        "years and was to be married at midnight. The silk was grey with the dust of her tomb. Wherever my needle "
        "pricked me the blood sank into the cloth and was gone, and it seemed to me, as the wind moaned in the "
        "chimney, that the empty bodice had begun to breathe.",
        "“Sew it tighter,” breathed the bride, though I could already count her ribs through the satin, pale as the "
        "bars of a cage. Her hands were as cold as marble. Below in the chapel the organ had begun its funeral march, "
        "and the guests were climbing one by one out of the vault. “Tighter,” she said, “or he will see that I have no "
        "heart.”",
    ),
    "clock": (
        "The town clock had been eleven minutes fast for as long as anyone could remember, and people had arranged "
        "their lives around it. When the council voted to put it right, the baker missed his oven, the school let out "
        "in the middle of a song, and two weddings met each other on the church steps. By Friday there was a petition.",
        "“What seems to be the trouble?” asked the clockmaker, and my grandfather unwrapped the cuckoo from his "
        "handkerchief and stood it on the counter. It had lost a wing. “He says only the half hours now,” my "
        "grandfather told her, “and he used to be so cheerful at noon.”",
        "When the church clock stopped at ten past four we thought little of it, for it was an old clock. The next day "
        "the one at the bank stopped at ten past four, and then the one in the school, and by Sunday every watch in "
        "town agreed. Nothing has happened yet at ten past four, but all of us have begun to stand at our windows a "
        "little before.",
        "In the highest chamber of the ruined tower the great clock laboured on, though its maker had hanged himself "
        "among the wheels. Bats clung to the pendulum. I had climbed through three centuries of dust to silence it, "
        "but as I raised the hammer the hour fell due, and from the crypt beneath me thirteen voices, hollow as the "
        "grave, began to count.",
        "“It has never struck thirteen but there was a corpse in this house by morning,” said the countess, and she "
        "drew her black shawl closer. The whole company had fallen silent. Somewhere in the shadows above the stair "
        "the old clock shuddered, gathered its breath, and began. “Count with me,” she whispered, “and do not look at "
        "the door.”",
    ),
    "garden": (
        "Dolores took over the allotment in March, and with it a shed, a wheelbarrow and forty years of another "
        "person’s labels. She dug where they said beans and planted beans. In July something enormous came up in the "
        "corner marked, in pencil, with a question mark, and the whole allotment society came to see it on Sunday "
        "after tea.",
        "“That is not a weed,” said my neighbour over the fence, in the voice of a man who has waited all spring to "
        "say so. I put down the trowel. “Then what is it?” called my wife from the kitchen, and he leaned so far "
        "across to look that the fence, after thirty years of standing between us, lay down in the lettuces.",
        "Each morning there was one more rose in the garden than I had planted. They were good roses, dark and heavy, "
        "in a row so straight that someone might have used a line, and each came up a foot nearer to the house. This "
        "morning I went out with a spade to see what they were growing from, and the ground, when I knelt and put my "
        "hand to it, was warm.",
        "Nothing would grow in the walled garden of the convent save one black rose, and that, the sisters told me, "
        "was fed by the grave beneath it. I came by moonlight, with a spade and a guilty heart. At the third stroke "
        "the thorns closed about my wrist like fingers, and from under the rotting leaves a voice that I had loved, "
        "and buried, began to weep.",
        "“We do not prune the yew, sir, for it bleeds,” the old gardener said, and along the graveyard wall the wind "
        "gave a long, low moan. I took the knife from him with a scornful laugh. “Your father laughed,” he said, "
        "crossing himself as the first drop fell red and warm upon my sleeve, “and that is him there, the third root "
        "from the tomb.”",
    ),
    "portrait": (
        "Under the brown varnish there was a blue dress, and under the blue dress, when Paul cleaned a little farther, "
        "there was a dog. He stepped back and drank his coffee. Three hundred years ago somebody had paid a painter to "
        "cover up a perfectly good spaniel, and Paul thought he would not go home that night until he knew why.",
        "“You have made me look like my mother,” said Mrs Lindqvist, walking round the easel with her hat on. I said "
        "that I could change the chin. “Don’t you dare,” she said, and she sat down in front of the picture for the "
        "rest of the afternoon and told it everything that had happened since 1974.",
        "The portrait on the stairs was of a man with his hand in his coat. I passed it four times a day with the "
        "linen, and it was some weeks before I was sure that the hand was coming out. Nobody in the family would look "
        "at it, I noticed, and on Sundays one of them would count the knives.",
        "For a hundred years the portrait of the Marquis had hung veiled in black at the end of the gallery, and it "
        "was I who, on the night of the storm, tore the veil away. Lightning filled the great window. The frame showed "
        "nothing but a dark and empty chamber, and a trail of wet red paint led down the stairs towards my daughter’s "
        "door.",
        "“Her eyes were closed when I painted them,” said the artist, and his voice cracked like old varnish. I lifted "
        "the candle to the canvas, and the dead girl gazed back at us with a hunger that turned my blood to ice. "
        "“Every night they open a little wider,” he sobbed, “and every night, God help me, she looks less at me and "
        "more at the door.”",
    ),
    "doctor": (
        "The telephone rang at two in the morning, and by half past Dr Lund was walking up the valley on borrowed skis "
        "with her bag on her back. The baby was early, the road was closed and the grandmother had views on hot water. "
        "At six the snow stopped, the sun came over the ridge, and there were five people in the kitchen instead of "
        "four.",
        "“Since the snow came, Doctor,” said the farmer when I asked, looking at his watch, “and he will not eat, and "
        "he will not get off the roof.” I told him that I treated people. “I know that,” he said, “but he is a very "
        "clever goat, and he thinks he is one.”",
        "I was called out in the snow to a house at the top of the valley, and I followed the tracks of the man who "
        "had come to fetch me. They went ahead of my lantern, deep and even, as far as the gate. There they stopped, "
        "and when I looked back to see how I had come, there was only one line of footprints in all that white, and it "
        "was his.",
        "The snow had sealed the mountain pass behind me, and ahead, black against the moon, rose the castle where my "
        "patient lay dying of no disease that I could name. Wolves cried in the pines. A servant with a face like a "
        "death mask led me to a chamber hung with crimson, and there upon the pillow, smiling and bloodless, I beheld "
        "my own face.",
        "“You have come too late, Doctor, for he died at dusk,” said the veiled woman at the door, “but come in, come "
        "in, for he is asking for you.” The wind shrieked about the castle and blew out my lantern. From the darkness "
        "at the head of the stair came a rattle of chains and a low, coughing laugh, and I heard the bolt slide home "
        "behind me.",
    ),
}
"""By scenario, one opening in each of `STYLES`."""
