"""The tables of the grammar's words, as text; :mod:`lexicon` reads them."""

DOMAINS = """
person    adult child parent kin offspring
animal    pet farm wild
food      fruit cake dish
text      letter poem book print map
tool      key knife device instrument wear cup
transport vehicle ship service
fittings  furniture bed fixture
place     nature town building hall room
"""
"""What is spoken of: a domain, then the kinds of noun in it, by which verbs and adjectives choose."""

NOUNS = """
adult     man men m Mann Männer Mannes m | woman women f Frau Frauen Frau f
adult     singer singers f Sängerin Sängerinnen Sängerin f | baker bakers m Bäcker Bäcker Bäckers m
adult     bus_driver bus_drivers m Busfahrer Busfahrer Busfahrers m
+adult    doctor doctors m Arzt Ärzte Arztes m | teacher teachers m Lehrer Lehrer Lehrers m
+adult    student students m Student Studenten Studenten* m | neighbor neighbors m Nachbar Nachbarn Nachbarn* m
+adult    friend friends m Freund Freunde Freundes m
child     boy boys m Junge Jungen Jungen* m | girl girls n Mädchen Mädchen Mädchens f
+child    child children n Kind Kinder Kindes n
+parent   mother mothers f Mutter Mütter Mutter f | father fathers m Vater Väter Vaters m
+kin      aunt aunts f Tante Tanten Tante f | uncle uncles m Onkel Onkel Onkels m
+kin      sister sisters f Schwester Schwestern Schwester f | brother brothers m Bruder Brüder Bruders m
+offspring daughter daughters f Tochter Töchter Tochter f | son sons m Sohn Söhne Sohnes m
+pet      dog dogs m Hund Hunde Hundes n | cat cats f Katze Katzen Katze n
+farm     horse horses n Pferd Pferde Pferdes n | cow cows f Kuh Kühe Kuh n | goat goats f Ziege Ziegen Ziege n
+wild     bird birds m Vogel Vögel Vogels n
wild      mouse mice f Maus Mäuse Maus n | bear bears m Bär Bären Bären* n
+fruit    apple apples m Apfel Äpfel Apfels n | potato potatoes f Kartoffel Kartoffeln Kartoffel n
+fruit    carrot carrots f Karotte Karotten Karotte n
+cake     cake cakes m Kuchen Kuchen Kuchens n | apple_cake apple_cakes m Apfelkuchen Apfelkuchen Apfelkuchens n
+dish     egg eggs n Ei Eier Eies n | sausage sausages f Wurst Würste Wurst n
+letter   letter letters m Brief Briefe Briefes n
+poem     poem poems n Gedicht Gedichte Gedichtes n
+book     book books n Buch Bücher Buches n
+print    newspaper newspapers f Zeitung Zeitungen Zeitung n | school_book school_books n Schulbuch Schulbücher Schulbuches n
+map      city_map city_maps m Stadtplan Stadtpläne Stadtplanes n
+key      key keys m Schlüssel Schlüssel Schlüssels n | house_key house_keys m Hausschlüssel Hausschlüssel Hausschlüssels n
+knife    knife knives n Messer Messer Messers n | kitchen_knife kitchen_knives n Küchenmesser Küchenmesser Küchenmessers n
+device   lamp lamps f Lampe Lampen Lampe n
+instrument camera cameras f Kamera Kameras Kamera n | guitar guitars f Gitarre Gitarren Gitarre n
+wear     hat hats m Hut Hüte Hutes n | bag bags f Tasche Taschen Tasche n
+wear     umbrella umbrellas m Regenschirm Regenschirme Regenschirmes n
+cup      coffee_cup coffee_cups f Kaffeetasse Kaffeetassen Kaffeetasse n
+vehicle  car cars n Auto Autos Autos n | bicycle bicycles n Fahrrad Fahrräder Fahrrades n
+ship     ship ships n Schiff Schiffe Schiffes n
service   school_bus school_buses m Schulbus Schulbusse Schulbusses n
service   police_car police_cars n Polizeiauto Polizeiautos Polizeiautos n
+furniture table tables m Tisch Tische Tisches n | chair chairs m Stuhl Stühle Stuhles n
+furniture kitchen_table kitchen_tables m Küchentisch Küchentische Küchentisches n
+furniture garden_chair garden_chairs m Gartenstuhl Gartenstühle Gartenstuhles n
+bed      bed beds n Bett Betten Bettes n
+fixture  door doors f Tür Türen Tür n | garden_door garden_doors f Gartentür Gartentüren Gartentür n
+fixture  window windows n Fenster Fenster Fensters n
nature    garden gardens m Garten Gärten Gartens n | park parks m Park Parks Parks n | forest forests m Wald Wälder Waldes n
town      village villages n Dorf Dörfer Dorfes n | city cities f Stadt Städte Stadt n
building  house houses n Haus Häuser Hauses n | school schools f Schule Schulen Schule n
building  church churches f Kirche Kirchen Kirche n | train_station train_stations m Bahnhof Bahnhöfe Bahnhofes n
hall      hospital hospitals n Krankenhaus Krankenhäuser Krankenhauses n
hall      library libraries f Bibliothek Bibliotheken Bibliothek n | office offices n Büro Büros Büros n
room      kitchen kitchens f Küche Küchen Küche n
"""
"""By kind: entries as in Noun; "+": someone can have it; "*": a weak noun; "_": a space."""

ADJECTIVES = """
1 person animal: clever klug klug | friendly freundlich freundlich | brave mutig mutig | lazy faul faul
1 device instrument wear cup furniture vehicle ship letter poem book: beautiful schön schön
1 device instrument wear cup knife furniture bed vehicle ship book print map food: expensive teuer teur | cheap billig billig
1 poem book: famous berühmt berühmt
1 letter poem book print: boring langweilig langweilig
1 food: fresh frisch frisch
1 cake: sweet süß süß
1 dish: cold kalt kalt
1 place: quiet ruhig ruhig | dark dunkel dunkl
2 person animal place transport fittings tool food map: small klein klein | big groß groß
2 furniture bed fixture instrument: heavy schwer schwer
2 letter poem book: long lang lang
3 person animal: strong stark stark | hungry hungrig hungrig | tired müde müd | sick krank krank
4 adult parent kin offspring animal: young jung jung
4 adult parent kin offspring animal tool transport fittings text place: old alt alt
4 tool transport fittings text building hall room: new neu neu
5 device instrument wear cup furniture fixture vehicle ship: red rot rot | blue blau blau | green grün grün
5 device instrument wear cup furniture fixture vehicle ship: black schwarz schwarz | white weiß weiß
"""
"""Rank and kinds or domains of noun, then entries: English, German after "ist", German stem."""

VERBS = """
none place try: person animal: sleep sleeps slept slept = schlafen schläft schlief geschlafen
none place try begin promise: person: work works worked worked = arbeiten arbeitet arbeitete gearbeitet
none place try begin promise: person: dance dances danced danced = tanzen tanzt tanzte getanzt
none place begin: person: laugh laughs laughed laughed = lachen lacht lachte gelacht
none try begin promise: person pet farm: swim swims swam swum = schwimmen schwimmt schwamm geschwommen sein
none: person pet: arrive arrives arrived arrived = an|kommen kommt kam angekommen sein
none try promise forget: person pet farm: get_up gets_up got_up got_up = auf|stehen steht stand aufgestanden sein
none place try befalls: person animal: fall_asleep falls_asleep fell_asleep fallen_asleep =\
 ein|schlafen schläft schlief eingeschlafen sein
none promise try: person animal: come_back comes_back came_back come_back = zurück|kommen kommt kam zurückgekommen sein
acc place try befalls: person animal > person animal: see sees saw seen = sehen sieht sah gesehen
acc place try befalls: person animal > person animal: hear hears heard heard = hören hört hörte gehört
acc state: person > person pet farm: love loves loved loved = lieben liebt liebte geliebt
acc try promise forget: person > person: visit visits visited visited = besuchen besucht besuchte besucht
acc try promise forget: person > person: call calls called called = an|rufen ruft rief angerufen
acc promise forget: person > person: invite invites invited invited = ein|laden lädt lud eingeladen
acc place promise forget: person > person pet: pick_up picks_up picked_up picked_up = ab|holen holt holte abgeholt
acc state: person > person: know knows knew known = kennen kennt kannte gekannt
acc place try promise forget: person > knife device instrument wear cup vehicle furniture bed food book print map pet farm:\
 buy buys bought bought = kaufen kauft kaufte gekauft
acc place try promise: person > knife device instrument wear cup vehicle ship furniture bed food book print map pet farm:\
 sell sells sold sold = verkaufen verkauft verkaufte verkauft
acc place try begin promise: person > tool text pet farm person: look_for looks_for looked_for looked_for =\
 suchen sucht suchte gesucht
acc place try befalls: person > tool text pet farm person: find finds found found = finden findet fand gefunden
acc place try befalls: animal > food: find finds found found = finden findet fand gefunden
acc place befalls: person > key knife instrument wear letter book print map: forget forgets forgot forgotten =\
 vergessen vergisst vergaß vergessen
acc try begin: person > furniture bed device instrument wear fruit cake: carry carries carried carried =\
 tragen trägt trug getragen
acc try begin promise: person > text device instrument wear cup vehicle ship: describe describes described described =\
 beschreiben beschreibt beschrieb beschrieben
acc place try begin promise forget creates: person > letter poem book: write writes wrote written =\
 schreiben schreibt schrieb geschrieben
acc place try begin promise: person > food: eat eats ate eaten = essen isst aß gegessen
acc place try begin: animal > fruit: eat eats ate eaten = fressen frisst fraß gefressen
acc place try begin promise forget: person > transport furniture bed fixture device instrument:\
 repair repairs repaired repaired = reparieren repariert reparierte repariert
acc place begin promise forget: person > transport furniture fixture knife cup device: clean cleans cleaned cleaned =\
 putzen putzt putzte geputzt
acc promise forget: person > knife device wear cup furniture bed food text: throw_away throws_away threw_away thrown_away =\
 weg|werfen wirft warf weggeworfen
acc promise forget: person > tool food text: bring_along brings_along brought_along brought_along =\
 mit|bringen bringt brachte mitgebracht
dat place try begin promise: person > person: help helps helped helped = helfen hilft half geholfen
dat promise forget: person > person: thank thanks thanked thanked = danken dankt dankte gedankt
dat try begin: person > person vehicle service pet farm: follow follows followed followed = folgen folgt folgte gefolgt sein
dat try begin: animal > person animal: follow follows followed followed = folgen folgt folgte gefolgt sein
dat try promise: person > person: listen_to listens_to listened_to listened_to = zu|hören hört hörte zugehört
dat state: person > person: trust trusts trusted trusted = vertrauen vertraut vertraute vertraut
dat_acc promise forget: person > tool food text: give gives gave given = geben gibt gab gegeben
dat_acc try begin promise forget: person > tool text vehicle pet farm: show shows showed shown = zeigen zeigt zeigte gezeigt
dat_acc try promise forget: person > key knife device instrument wear cup text cake: send sends sent sent =\
 schicken schickt schickte geschickt
prep promise: person > person ship service [for auf acc]: wait waits waited waited = warten wartet wartete gewartet
prep try: person > person animal [of an acc]: think thinks thought thought = denken denkt dachte gedacht
prep begin befalls: person > person animal vehicle ship [of von dat]: dream dreams dreamed dreamed =\
 träumen träumt träumte geträumt
prep try begin promise: person > person animal text [about über acc]: talk talks talked talked =\
 sprechen spricht sprach gesprochen
to try promise: person > nature town building hall room: go goes went gone = gehen geht ging gegangen sein
to try: pet farm > nature town: go goes went gone = gehen geht ging gegangen sein
to try promise: person > metropolis town building hall: drive drives drove driven = fahren fährt fuhr gefahren sein
to promise: person > metropolis: travel travels traveled traveled = reisen reist reiste gereist sein
to try begin: person > nature town building: run runs ran run = rennen rennt rannte gerannt sein
to try begin: animal > nature town: run runs ran run = rennen rennt rannte gerannt sein
that state: person: say says said said = sagen sagt sagte gesagt
that state: person: believe believes believed believed = glauben glaubt glaubte geglaubt
that state: person: know knows knew known = wissen weiß wusste gewusst
that state positive: person: hope hopes hoped hoped = hoffen hofft hoffte gehofft
whether state positive: person: ask asks asked asked = fragen fragt fragte gefragt
infinitive: person animal: try tries tried tried = versuchen versucht versuchte versucht
infinitive: person: forget forgets forgot forgotten = vergessen vergisst vergaß vergessen
infinitive: person animal: begin begins began begun = beginnen beginnt begann begonnen
infinitive: person: promise promises promised promised = versprechen verspricht versprach versprochen
"""
"""Frame and traits; kinds or domains of subject, object, prepositions and case; forms.

Traits: "place", a place can be added; "state", a state; "positive", nobody denies it;
"befalls", nobody must or may do it; "creates", its object was not there before; else verbs whose infinitive it can be.
No verb here has one English form for the present and the past (they read), nor is any sentence ambiguous otherwise.
"""

TIMES = """
perfect modal future:      today = heute
modal:                     now = jetzt
present past modal:        every day = jeden Tag | every morning = jeden Morgen
present past future modal: in_the evening = am Abend
past:                      yesterday = gestern | last week = letzte Woche | last year = letztes Jahr
future modal:              tomorrow = morgen | next week = nächste Woche
past future modal:         on Monday = am Montag | on Tuesday = am Dienstag | on Wednesday = am Mittwoch
past future modal:         on Thursday = am Donnerstag | on Friday = am Freitag | on Saturday = am Samstag
past future modal:         on Sunday = am Sonntag
"""
"""Tenses, then parts in English and in German, which correspond in order."""

NAMES = """
f Anna Maria Julia Laura Sarah Lena Emma Clara Nina Eva Paula Marta Helena Sofia Ida Greta Rosa Nora Alma Frieda Hanna Mila
m Peter Thomas Max Paul Martin David Simon Lukas Felix Oskar Anton Jonas Robert Karl Emil Hugo Leo Viktor Bruno Erik Jakob Kurt
- Berlin Hamburg London Paris Madrid Oslo Boston Dublin Bremen Chicago Toronto Sydney
"""
"""First names and names of cities, the same in both languages."""

NUMERALS = (
    "two zwei three drei four vier five fünf six sechs seven sieben eight acht nine neun ten zehn eleven elf twelve zwölf"
)
"""English and German in turn."""
