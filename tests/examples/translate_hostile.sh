# translate with files that are missing, cut off, or not what they should be; and with flags that make no sense.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/translate_data.sh"

refused '--data: name the folder' translate --out out
refused 'missing/train.en: ' translate --data missing --out out
refused '--attention magic: must be linear, ' translate "${tiny[@]}" --attention magic --out out
refused '--attention lsh: wants --buckets' translate "${tiny[@]}" --attention lsh --out out
refused '--dim 17: must be a multiple of --heads 2' translate --data data --heads 2 --dim 17 --out out
refused '--dropout 1: must be 0 to 0.99' translate "${tiny[@]}" --dropout 1 --out out
refused '--smoothing nan: must be 0 to 1' translate "${tiny[@]}" --smoothing nan --out out
refused '--epochs 0: must be at least 1' translate "${tiny[@]}" --epochs 0 --out out
refused '--minutes -1: must be above 0' translate "${tiny[@]}" --minutes -1 --out out
refused '--max-length 500: must be at most 400' translate "${tiny[@]}" --max-length 500 --out out
refused '--beam 0: must be at least 1' translate "${tiny[@]}" --beam 0 --out out
refused '--beam 4: with a --temperature it must be 1' translate --from out --beam 4 --temperature 1
refused '--top-k and --top-p want a --temperature' translate --from out --top-k 4
refused '--top-p 0: must be above 0' translate --from out --top-p 0 --temperature 1
refused '--from' translate --translate data/val.de
refused '--svg' translate --from out --show-attention 'one'
refused '[Ee]xcludes' translate --resume a --evaluate b
refused '[Ee]xcludes' translate --from a --out b
refused 'missing: there is no such folder' translate --from missing
refused 'missing: there is no such folder' translate --evaluate missing
refused 'missing: there is no such folder' translate --resume missing
refused '--test|missing_test' translate "${tiny[@]}" --test missing_test --out out
refused 'Vocabulary size is smaller' translate --data data "${shape[@]}" --dim 16 --vocab 8 --out out

# Data that are not what they should be: the message names the file, and no folder is left.
spoilt() {  # spoilt PATTERN: with data as they are now
  refused "$1" translate --data spoilt "${small[@]}" --out out
  [ ! -e out ] || fail "a refused run left a folder"
  rm -r spoilt && cp -r data spoilt
}
cp -r data spoilt
head -n 299 data/train.en >spoilt/train.en && spoilt '29[09]'
printf 'one \xff\xfe two\n' >spoilt/train.en && spoilt 'spoilt/train.en.*UTF-8|spoilt/train.en.*line 1'
head -c 200 data/train.de.gz >spoilt/train.de.gz && spoilt 'spoilt/train.de.gz'
echo 'no gzip' >spoilt/train.de.gz && spoilt 'spoilt/train.de.gz'
rm spoilt/test_2016_flickr.de && spoilt 'spoilt/test_2016_flickr.de'
rm spoilt/val.de && mkdir spoilt/val.de && spoilt 'spoilt/val.de'
rm spoilt/train.* && yes '' | head -n 9 | tee spoilt/train.en >spoilt/train.de && spoilt 'spoilt|text'
: >spoilt/val.de && : >spoilt/val.en && rm spoilt/val.en.gz && spoilt 'spoilt: there are no pairs'

# Empty lines and long ones among others are left out, and said so.
{ zcat data/train.de.gz; echo; yes acht | head -n 300 | paste -sd' '; } | gzip >spoilt/train.de.gz
{ cat data/train.en; echo one; echo two; } >spoilt/train.en
runs translate --data spoilt "${small[@]}" --epochs 1 --out run
grep -q '300 pairs to train on (1 with an empty side and 1 too long left out)' log || { cat log; fail "what was left out"; }

# A run that ended before its first checkpoint, for want of room, may be started again in the same folder.
limited() { (ulimit -f $(($(wc -c <run/tokenizer.model) / 1024 + 16)) && translate "$@"); }
refused 'early/checkpoint' limited --data data "${shape[@]}" --vocab 60 --dim 64 --epochs 1 --out early
[ "$(ls -A early | tr '\n' ' ')" = 'settings.json tokenizer.model ' ] || fail "it left $(ls -A early)"
runs translate "${tiny[@]}" --epochs 1 --out early
refused 'early: holds a run already' translate "${tiny[@]}" --epochs 1 --out early

# What is given to translate: every line gets one back.
{ echo 'one two'; printf 'bad \xff line\n'; echo; echo 'žluťoučký 🐦 unknown words \t'; printf 'six\r\n'; printf 'no end'; } >lines
by_input() { translate --from run <lines; }
refused '^line 2: is not UTF-8 at byte 5' by_input
[ "$(translate --from run <lines 2>/dev/null | wc -l)" = 6 ] || fail "six lines for six"
refused 'lines' translate --translate lines --from run
refused 'missing' translate --translate missing --from run
: >empty
runs translate --translate empty --from run
[ ! -s log ] || fail "nothing comes of nothing"
yes 'one two three' | head -n 700 | paste -sd' ' >long
runs translate --translate long --from run --beam 1
grep -q '1 line has more than 1,000 subwords' log || { cat log; fail "it should say what was cut"; }
head -c 1100000 /dev/zero | tr '\0' a >huge
by_huge() { translate --from run <huge; }
refused '^line 1: is longer than a megabyte' by_huge
refused '--show-attention: the sentence has no words' translate --from run --show-attention ' ' --svg a.svg
refused 'missing/a.svg' translate --from run --show-attention 'one' --svg missing/a.svg
refused '--layer 2: the model has 1' translate --from run --show-attention 'one' --svg a.svg --layer 2
refused '--head 3: the model has 2' translate --from run --show-attention 'one' --svg a.svg --head 3
refused 'the settings come from the folder' translate --from run --dim 32
to_full_disk() { translate --translate lines_good --from run >/dev/full; }
echo 'one' >lines_good
refused 'the output could not be written' to_full_disk

# The files of a run.
damaged() {  # damaged FILE PATTERN: cut off, full of something else, away
  cp run/$1 kept
  head -c $(($(wc -c <kept) / 2)) kept >run/$1 && refused "$2" translate --translate lines_good --from run
  head -c 5000 /dev/urandom >run/$1 && refused "$2" translate --translate lines_good --from run
  rm run/$1 && refused "$2" translate --translate lines_good --from run
  cp kept run/$1
}
damaged tokenizer.model 'run/tokenizer.model'
damaged model.safetensors 'run/model.safetensors|run: holds no model yet'
damaged settings.json 'run/settings.json|run: holds no run'
runs translate --data data "${shape[@]}" --dim 16 --vocab 40 --epochs 1 --out smaller
cp run/tokenizer.model kept && cp smaller/tokenizer.model run/tokenizer.model
refused 'run/model.safetensors' translate --translate lines_good --from run
refused 'run/checkpoint' translate --resume run --epochs 2
rm run/tokenizer.model
refused 'run/tokenizer.model' translate --resume run --epochs 2
cp kept run/tokenizer.model
