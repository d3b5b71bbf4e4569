"""Writes bleu.json: corpora scored, and lines cut into words, by sacreBLEU itself. Needs `pip install sacrebleu`."""
import json
import pathlib

from sacrebleu.metrics import BLEU

metric = BLEU(lowercase=True)  # the defaults: tok:13a, smooth:exp, eff:no

LINES = [
    "", "   ", "Hello, World!", "It costs $1,234.56 (or 1.000,50 EUR).", "A well-known 3-year-old, 1990-2000; 5-.",
    "\u00c4rger mit \u00d6fen, \u00dcbel und Stra\u00dfe: STRASSE, STRA\u1e9eE.", "He said &quot;no&quot; &amp; left &lt;b&gt;.",
    "&QUOT;upper&QUOT; &amp;lt; &amp;quot;", "don't can\u2019t 'quoted' ``x'' o'clock", "a..b ... ,, .,. 1.,2 .5 5. x.y 3.a a.3",
    "e.g. U.S.A. etc.", "http://x.org/a_b?c=d&e=f#g a@b.c 50% ~{}[]^`|\\", "a\u00a0b\u3000c\td  e \u2003", "<skipped>x <SKIPPED> y",
    "\u201eAnf\u00fchrung\u201c \u2013 Gedanken\u2014strich \u2026", "line-\nbroken and\nnew\n", "\u65e5\u672c\u8a9e\u3002 \u0414\u0410, \u041f\u0420\u0418\u0412\u0415\u0422! \u0391\u0392\u0393 \u038c\u03a7\u0399",
    "\u0130stanbul",
    # Every capital that bleu.h says is covered, but for sigma, whose small letter depends on its place.
    "".join(chr(c) for first, last in [(0x21, 0x17F), (0x386, 0x3AB), (0x400, 0x4BF), (0x4D0, 0x52F), (0x1E00, 0x1EFF)]
            for c in range(first, last + 1) if chr(c).isupper() and c != 0x3A3),
]

CORPORA = {
    "exact": (["The cat sat on the mat ."] * 2, ["the cat sat on the mat."] * 2),
    "german": (["Ein Mann f\u00e4hrt \u00dcBER die Stra\u00dfe.", "Zwei Hunde spielen im Gras, oder?"],
               ["Ein Mann f\u00e4hrt \u00fcber eine Stra\u00dfe.", "Zwei Hunde spielen auf dem Gras, nicht wahr?"]),
    "numbers": (["It costs 1,234.56 dollars in 1990-2000.", "3-year-old"], ["it costs 1,234.56 euros in 1990 - 2000.", "3-year-olds"]),
    "entities": (["He said &quot;no&quot; to R&amp;D people today"], ["He said \"no\" to R&D people yesterday"]),
    "one empty": (["", "a b c d e f g"], ["x y z", "a b c d e f h"]),
    "all empty": (["", ""], ["x y z", "a"]),
    "empty reference": (["a b c d", "e f g h"], ["", "e f g h"]),
    "nothing in common": (["a b c d e"], ["v w x y z"]),
    "only words": (["a c b d e f"], ["b a d c f e"]),
    "no four": (["a b c x d"], ["a b c y d"]),
    "short sentences": (["a b", "c"], ["a b", "c"]),
    "short": (["the cat sat on"], ["the cat sat on the mat with the dog"]),
    "long": (["the cat sat on the mat with the dog"], ["the cat sat on the"]),
    "repeated": (["the the the the the the the"], ["the cat is on the mat"]),
}

cases = {}
for name, (translations, references) in CORPORA.items():
    r = metric.corpus_score(translations, [references])
    cases[name] = dict(translations=translations, references=references, score=r.score, precisions=r.precisions, bp=r.bp,
                       length=r.sys_len, reference_length=r.ref_len, matches=list(r.counts), totals=list(r.totals))
words = [dict(line=line, words=metric._preprocess_segment(line).split()) for line in LINES]
out = pathlib.Path(__file__).with_name("bleu.json")
out.write_text(json.dumps(dict(signature=str(metric.get_signature()), words=words, corpora=cases), indent=1) + "\n")
