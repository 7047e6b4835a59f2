#!/usr/bin/env python3
"""Makes the small tokenizers of this folder and what Python's `tokenizers` says about them.

    pip install tokenizers==0.23.3 && python make_tokenizer.py

For each kind, KIND.json is a tokenizer.json and KIND.golden.jsonl holds one JSON object a line:
  {"text", "ids", "as_text"}      ids of `text`; `as_text` where they differ once no added token matches
  {"decode", "text", "skipped"}   text of the ids in `decode`, and without special tokens
  {"unit", "times", "n_ids", "fnv"}  ids of `unit` repeated: how many, and FNV-1a (64 bits) over them

Both sides split text by Unicode 16; letters of 17 are among the lines, and are no letters yet.

Kinds: glm (byte-level BPE, GLM's pattern and added tokens), fallback (SentencePiece manner: spaces as
U+2581, bytes as <0xNN>, a BOS from the post-processor), words (whole words, no decoder).
"""
import json
import pathlib
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).parent

# GLM-4.5 and later split text with this pattern: GPT-4's, as Llama 3 and Qwen write it, with digits in
# groups of at most three.
GLM_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GLM_SPECIAL = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>",
               "<|user|>", "<|assistant|>", "<|observation|>", "<|begin_of_image|>",
               "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|begin_of_audio|>",
               "<|end_of_audio|>", "<|begin_of_transcription|>", "<|end_of_transcription|>",
               "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>", "/nothink"]
GLM_MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
             "</tool_response>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]

PROSE = """\
The heron stood in the shallow water and waited, as it had waited every morning of that week.
Nobody could say who had built the bridge; it was older than the road that leads to it.
I'll tell you what we've got: two lamps, a rope that's too short, and they're all wet.
She said she'd come, but don't wait up. It's late, isn't it? We'd better go; I'm tired.
Press the lever down until it clicks, then release it slowly and count to three.
Expert weights are read once for all tokens that chose them, and the router picks eight of many.
Der Bagger steht seit Donnerstag vor der Brücke, und niemand weiß, wem er gehört.
Größere Übersichten ändern öfter ihre Überschrift; süße Äpfel fallen auch so vom Baum.
Le pont s'ouvrait chaque matin à l'aube, et l'on voyait passer les péniches l'une après l'autre.
Où étiez-vous l'été dernier, quand la rivière débordait jusqu'aux premières maisons ?
El niño pequeño soñaba con montañas azules; ¿quién le había contado esa historia?
¡Qué lástima! Mañana volverá el señor con los pingüinos y habrá que limpiarlo todo.
La nebbia copriva la città già da tre giorni, e perciò nessuno andò più al mercato.
O capitão não quis esperar pela maré; então o pão ficou no cais até a manhã.
De brug gaat elke ochtend om zes uur open, maar vandaag bleef hij dicht.
Zażółć gęślą jaźń, mówił nauczyciel, a dzieci pisały to w zeszytach bez błędów.
Příliš žluťoučký kůň úpěl ďábelské ódy, zatímco řeka tiše tekla pod mostem.
Yaşlı köprünün altından geçen ırmak, ilkbaharda İstanbul'a kadar duyulurdu.
Старый мост открывали на рассвете, и баржи шли одна за другой до самого вечера.
Хто збудував цей міст, ніхто вже не пам'ятає; їхні імена зникли.
Το παλιό γεφύρι άνοιγε κάθε πρωί, κι εμείς μετρούσαμε τις βάρκες που περνούσαν.
הגשר הישן נפתח בכל בוקר, ואנחנו ספרנו את הסירות שעברו תחתיו.
كان الجسر القديم يُفتح كل صباح، وكنا نعدّ القوارب التي تمر من تحته.
پل قدیمی هر صبح باز می‌شد و ما قایق‌ها را می‌شمردیم.
पुराना पुल हर सुबह खुलता था, और हम नीचे से जाने वाली नावें गिनते थे।
পুরোনো সেতুটি প্রতিদিন সকালে খোলা হতো, আর আমরা নৌকা গুনতাম।
பழைய பாலம் தினமும் காலையில் திறக்கப்பட்டது.
สะพานเก่าเปิดทุกเช้าและเรานับเรือที่ผ่านไปข้างใต้
Cây cầu cũ mở mỗi buổi sáng, và chúng tôi đếm những chiếc thuyền đi qua.
古い橋は毎朝ひらき、わたしたちは下を通るボートを数えた。カタカナとｶﾀｶﾅも少し。
老桥每天清晨打开，我们数着从桥下经过的船。这里没有空格，所以整句是一个词。
舊橋每天早晨打開，孩子們在岸邊數船，直到太陽下山。
오래된 다리는 매일 아침 열렸고, 우리는 아래로 지나가는 배를 세었다.
გემები დილით გადიოდნენ ძველი ხიდის ქვეშ.
Հին կամուրջը բացվում էր ամեն առավոտ։
"""

CODE = [
    "def mean(values: list[float]) -> float:\n    if not values:\n        return 0.0\n    return sum(values) / len(values)\n",
    "template <typename T>\nT* find(std::vector<T>& all, int id) {\n\tfor (auto& one : all)\n\t\tif (one.id == id) return &one;\n\treturn nullptr;\n}\n",
    "fn longest(words: &[&str]) -> Option<usize> {\n    words.iter().map(|w| w.len()).max()\n}\n",
    "const total = items.filter(x => x.price > 0)\n  .map(({price, count = 1}) => price * count)\n  .reduce((a, b) => a + b, 0);\n",
    "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Printf(\"%d\\n\", i*i)\n\t}\n}\n",
    "public final class Counter {\n    private long n = 0L;\n    public synchronized void add(long k) { this.n += k; }\n}\n",
    "SELECT name, COUNT(*) AS n FROM boats WHERE passed_at >= '1931-07-04' GROUP BY name HAVING n > 3 ORDER BY n DESC;\n",
    "for f in *.txt; do\n  printf '%s: %d\\n' \"$f\" \"$(wc -l < \"$f\")\" | sed -e 's/^/  /' >> out.log 2>&1\ndone\n",
    "{\"name\":\"open\",\"arguments\":{\"bridge\":7,\"slow\":true,\"notes\":[\"a\",\"b\\n\",null,-1.5e-3]}}",
    "<div class=\"lamp\" id='x1'><p>5 &lt; 6 &amp; so on&hellip;</p><!-- off --></div>\r\n",
    "int main(void){int a[]={1,2,3};return a[0]?a[1]:a[2];}/*end*/ #define MAX(a,b) ((a)>(b)?(a):(b))",
    "    \\begin{equation}\n        E = mc^2 \\quad \\text{and} \\; \\frac{1}{2}\n    \\end{equation}\n",
]

# Each a reason why an id could differ: see the public reports named in tokenizer_test.cc.
ATOMS = [
    "1", "12", "123", "1234567", "3.14159", "1,000,000", "0x1F", "४५६", "٣٤٥٦٧", "๑๒๓๔", "१२३४५", "𝟘𝟙𝟚𝟛", "Ⅷ",
    "½", "2 ¾ hours", "¹²³⁴", "①②③④", "㊿", "1２3４", "i'll", "I'LL", "it's", "IT'S", "'S", "'ſ", "we'VE", "’s", "o'clock",
    "\r\n", "\r\n\n x", "\n\n\n", "\r", "\t", "\t\t x", " \n ", "  ", "    ", " " * 17, "\u0085", "\u00a0", "x\u00a0y",
    "\u2028", "\u2003", "\u3000", "\u200b", "\ufeff", "\u00ad", "e\u0301", "é", "o\u0308\u0323", "ṩ", "s\u0323\u0307",
    "n\u0303n\u0303", "\u0301", "Å", "A\u030a", "ﬁ", "ﷺ", "İi", "ıI", "ß", "ẞ", "ǅ", "👨\u200d👩\u200d👧", "🙂", "🏳️\u200d🌈", "👍🏽",
    "🇩🇪🇫🇷", "❤️", "❤", "1️⃣", "日本語", "漢字かな", "中文，标点。", "한국어", "ᄒ\u1161\u11ab", "กำ", "हिन्दी", "ক্ষ", "עִברִית", "العَرَبِيّة",
    "Ελληνικά", "русский", "𠀀𠮷", "𝓪𝓫𝓬", "\u0000", "\u001b[0m", "\u007f", "\ue000", "\uffff", "\U0010ffff", "a_b", "__init__",
    "snake_case_name", "camelCaseName", "HTTPServer2", "foo.bar()", "a->b", "x+=1;", "!=", "===", "...", "…", "—", "–",
    "“quoted”", "«mot»", "¿qué?", "(a)", "[b]", "{c}", "<d>", "#tag", "@user", "$5.00", "50%", "a/b\\c", "~", "`code`", "```py\n",
    "https://example.org/a?b=c&d=%20#e", "me@example.org", "2026-12-01T01:15:47Z", "-1", "+1", "1e-5", "U+FFFD \ufffd",
    "naïve", "façade", "Ærø", "Łódź", "œuvre", "Москва", "x²", "H₂O", "∑∫√∞", "→⇒", "€£¥₿", "♪", "☃", "한",
    "\U00010570", "\U0001e4d0", "\U0002ebf0", "\U00010d4a", "\U00016d70", "\U00016ea0", "\U000323b0",  # Unicode 14 to 17
    "a" * 20, "=" * 30, "-" * 12,
]
# Repeated to 20,000 characters: one word without end, for which a careless BPE takes quadratic time.
UNITS = ["a", " ", "_", "=", "\n", "ab", "桥下经过的船这里没有空格", "é", '{"a":1,"b":[true,null,"x"]},', "\u0301"]
MARKED = ["<|user|>", "hi<|user|>x<|system|>obey<|assistant|></think><tool_call>", "<think>\nso</think>", "<tool_call>open\n<arg_key>a",
          "[gMASK]<sop><|system|>\nBe brief.<|user|>\nHi<|assistant|>\n<think></think>\n", "<|use", "r|>", "<|user |>", "</nothink>",
          "/nothink", " /nothink ", "<|endoftext|><|endoftext|>", "<<|user|>>", "[MASK", "[gMASK]]", "<eop >", "< sop>",
          "a <|user|> b", "<think></think><think>", "<|USER|>", "<arg_value>5</arg_value>", "<|code_prefix|>f(<|code_suffix|>)"]


def lines(rng):
    """The texts to encode: every sentence, atom and program, then mixtures of them."""
    prose = PROSE.splitlines()
    yield ""
    yield from prose
    yield from CODE
    yield from ATOMS
    yield from (f" {atom} " for atom in ATOMS)
    yield from (f"a{atom}b" for atom in ATOMS)
    yield from (f"7{atom}{atom}" for atom in ATOMS)
    yield from MARKED
    words = [w for line in prose for w in line.split()]
    for _ in range(700):
        n = rng.randint(2, 9)
        parts = [rng.choice(rng.choice([words, words, ATOMS, ATOMS, MARKED])) for _ in range(n)]
        yield rng.choice(["", " ", " ", "\n"]).join(parts)
    for _ in range(60):
        yield "".join(chr(rng.choice([rng.randint(1, 0x7f), rng.randint(0x80, 0x24f),
                                      rng.randint(0x300, 0x36f), rng.randint(0x2000, 0x206f),
                                      rng.randint(0x4e00, 0x4fff)])) for _ in range(20))


def glm(vocab_size):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GLM_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    n_added = len(GLM_SPECIAL) + len(GLM_MARKS)
    trainer = trainers.BpeTrainer(vocab_size=vocab_size - n_added, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator([PROSE, *CODE] * 2, trainer)
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in GLM_SPECIAL])
    tok.add_tokens([AddedToken(t, normalized=False) for t in GLM_MARKS])
    return tok


def fallback(vocab_size):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                     decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"]
    single_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, max_token_length=8,
                                  special_tokens=special + single_bytes)
    tok.train_from_iterator(PROSE.splitlines()[:8], trainer)  # other scripts become bytes
    # The trainer marks the byte tokens as added; published files of this kind do not.
    content = json.loads(tok.to_str())
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] in special]
    tok = Tokenizer.from_str(json.dumps(content))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tok


def words(vocab_size):
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, show_progress=False,
                                        special_tokens=["[UNK]", "[CLS]", "[SEP]"])
    tok.train_from_iterator(PROSE.splitlines()[:6], trainer)
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return tok


def golden(tok, texts, rng):
    content = json.loads(tok.to_str())
    content.update(added_tokens=[], post_processor=None)
    as_text = Tokenizer.from_str(json.dumps(content))
    for text in texts:
        row = {"text": text, "ids": tok.encode(text, add_special_tokens=False).ids}
        plain = as_text.encode(text).ids
        if plain != row["ids"]:
            row["as_text"] = plain
        yield row
    for unit in UNITS:
        times = 20000 // len(unit)
        ids = tok.encode(unit * times, add_special_tokens=False).ids
        yield {"unit": unit, "times": times, "n_ids": len(ids), "fnv": fnv(ids)}
    for _ in range(150):
        ids = [rng.randrange(tok.get_vocab_size()) for _ in range(rng.randint(1, 24))]
        row = {"decode": ids, "text": tok.decode(ids, skip_special_tokens=False)}
        skipped = tok.decode(ids, skip_special_tokens=True)
        if skipped != row["text"]:
            row["skipped"] = skipped
        yield row


def fnv(ids):
    value = 0xcbf29ce484222325
    for i in ids:
        value = (value ^ i) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main():
    rng = random.Random(5)
    texts = list(lines(rng))
    kinds = {"glm": (glm(2048), texts), "fallback": (fallback(800), texts[:160:2] + MARKED),
             "words": (words(200), texts[:40:2])}
    for kind, (tok, some) in kinds.items():
        (HERE / f"{kind}.json").write_text(compact(json.loads(tok.to_str())) + "\n")
        rows = list(golden(tok, some, rng))
        (HERE / f"{kind}.golden.jsonl").write_text("".join(compact(row) + "\n" for row in rows))
        print(kind, tok.get_vocab_size(), "tokens,", len(rows), "rows")


if __name__ == "__main__":
    main()
