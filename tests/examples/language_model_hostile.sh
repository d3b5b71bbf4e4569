# language_model with texts and files that are missing, cut off, or not what they should be; and with flags that make no
# sense.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/language_model_data.sh"

refused '--text: name the file' language_model --out out
refused 'missing: ' language_model --text missing --out out
refused '--attention magic: must be linear, ' language_model "${tiny[@]}" --attention magic --out out
refused '--attention lsh: cannot write token by token' language_model "${tiny[@]}" --attention lsh --buckets 4 --chunk 8 --out out
refused '--dim 17: must be a multiple of --heads 2' language_model --text text.txt --heads 2 --dim 17 --out out
refused '--subwords 3: must be at least 8' language_model "${tiny[@]}" --subwords 3 --out out
refused 'Vocabulary size is smaller|too small' language_model "${tiny[@]}" --subwords 8 --out out
refused '--dropout 1: must be 0 to 0.99' language_model "${tiny[@]}" --dropout 1 --out out
refused '--steps 0: must be at least 1' language_model "${tiny[@]}" --steps 0 --out out
refused '--warmup 5: must be at most 4' language_model --text text.txt --warmup 5 --steps 5 --out out
refused '--minutes -1: must be above 0' language_model "${tiny[@]}" --minutes -1 --out out
refused '--context 1: must be at least 2' language_model --text text.txt --context 1 --out out
refused '--temperature -1: must be 0 to 100' language_model --from out --temperature -1
refused '--top-p 0: must be above 0' language_model --from out --top-p 0
refused '--tokens -1: must be at least 0' language_model --from out --tokens -1
refused '--from' language_model --prompt der
refused '--from' language_model --timing a.svg
refused '--from: one folder writes, 2 are for --timing' language_model --from a --from b
refused '[Ee]xcludes' language_model --timing a.svg --from a --prompt der
refused '[Ee]xcludes' language_model --resume a --evaluate b
refused '[Ee]xcludes' language_model --from a --out b
refused '--from: names no folder' language_model --from ''
for what in --from --evaluate --resume; do refused 'missing: there is no such folder' language_model $what missing; done

# Texts that are not what they should be: the message names the file, and no folder is left.
spoilt() {  # spoilt PATTERN FILE
  refused "$1" language_model "${small[@]}" --text "$2" --out out
  [ ! -e out ] || fail "a refused run left a folder"
}
: >empty && spoilt 'empty: holds no text' empty
{ head -n 20 text.txt && printf 'bad \xff line\n'; } >bytes && spoilt 'bytes.*line 21' bytes
echo 'zu kurz' >short && spoilt 'short: the text is too short' short
head -c 17 text.txt >few && spoilt 'few: the text is too short' few
mkdir folder && spoilt 'folder' folder
gzip -k text.txt && head -c 100 text.txt.gz >cut.gz && spoilt 'cut.gz' cut.gz

runs language_model "${small[@]}" --text text.txt.gz --steps 20 --out run
# Characters that only the held-out text has are counted.
{ cat text.txt && verses 2 14 | tr k Q; } >other
runs language_model "${small[@]}" --text other --steps 20 --out unknown
grep -q 'held out ([1-9][0-9]* tokens of them are not in the vocabulary)' log || { cat log; fail "unknown characters"; }

refused '--prompt: is empty; give at least a character' language_model --from run --prompt ''
refused '--prompt: .*had no "€"' language_model --from run --prompt 'der €'
refused '--prompt: .*UTF-8' language_model --from run --prompt $'der \xff'
refused 'the settings come from the folder' language_model --from run --dim 32
refused 'missing/a.svg' language_model --timing missing/a.svg --from run --positions 5
to_full_disk() { language_model --from run --tokens 5 >/dev/full; }
refused 'the output could not be written' to_full_disk
rm text.txt.gz
refused 'text.txt.gz' language_model --evaluate run

# The files of a run.
damaged() {  # damaged FILE PATTERN: cut off, full of something else, away
  cp run/$1 kept
  head -c $(($(wc -c <kept) / 2)) kept >run/$1 && refused "$2" language_model --from run
  head -c 5000 /dev/urandom >run/$1 && refused "$2" language_model --from run
  rm run/$1 && refused "$2" language_model --from run
  cp kept run/$1
}
damaged characters.txt 'run/(characters.txt|model.safetensors)'
damaged model.safetensors 'run/model.safetensors|run: holds no model yet'
damaged settings.json 'run/settings.json|run: holds no run'
rm run/checkpoint*.safetensors
refused 'run: holds no checkpoint' language_model --resume run
