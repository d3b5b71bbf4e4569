# language_model on a small text: it trains, keeps the best, is measured, writes, and is a function of its flags.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/language_model_data.sh"
keys='attention best_step bits_per_character device held_out_characters parameters peak_bytes seconds seed steps threads
tokens_per_second'

for which in 'linear 0' 'softmax 0' 'linear 60'; do
  read -r attention subwords <<<"$which"
  run=$attention$subwords
  runs language_model "${tiny[@]}" --attention $attention --subwords $subwords --steps 50 --out $run
  grep -q '^step ' log || fail "no progress in a pipe"
  [ "$(grep -c '^Step [245]0: [0-9.]* bits a held-out character' log)" = 3 ] || { cat log; fail "three looks"; }
  found=$(grep -o '^  "[a-z_]*"' $run/summary.json | tr -d ' "' | sort | tr '\n' ' ')
  [ "$found" = "$(echo $keys) " ] || fail "keys of summary.json: $found"
  [ "$(cut -d, -f1 $run/validation.csv | tr '\n' ' ')" = 'step 20 40 50 ' ] || fail "rows of validation.csv"
  grep -q '</svg>' $run/curve.svg || fail "curve.svg is not whole"
  tokenizer=characters.txt
  [ "$subwords" = 0 ] || tokenizer=tokenizer.model
  for file in settings.json checkpoint.safetensors model.safetensors metrics.csv $tokenizer; do
    [ -s $run/$file ] || fail "no $file"
  done

  # --evaluate finds what the training found.
  runs language_model --evaluate $run
  bits=$(grep -o '"bits_per_character": [0-9.e+-]*' $run/summary.json | cut -d' ' -f2)
  grep -q "^$(printf %.3f "$bits") bits a character on " log || { cat log; fail "--evaluate finds other bits than $bits"; }

  # Writing: the prompt first, the same text again, another by another seed, any length.
  write() { language_model --from $run --prompt $'der k' --tokens 60 "$@" 2>err; }
  runs write
  cp log written
  [ "$(head -c 5 written)" = 'der k' ] || { cat log; fail "the text begins with the prompt"; }
  grep -q '^[0-9.]* ms a token$' err || { cat err; fail "no word on the time"; }
  runs write && same_files log written
  runs write --seed 2 && cmp -s log written && fail "the seed changes nothing"
  for flags in '--temperature 0' '--top-k 3 --top-p 0.8 --temperature 1.5'; do
    # shellcheck disable=SC2086  # flags
    runs write $flags && [ "$(wc -m <log)" -gt 60 ] || { cat log; fail "sixty tokens"; }
  done
  runs language_model --from $run --tokens 0
done

runs language_model --timing time.svg --from linear0 --from softmax0 --positions 100 --threads 1
grep -q 'linear attention: [0-9.]* ms a token at the start' log || { cat log; fail "no word on the times"; }
grep -q 'softmax attention' time.svg && grep -q '</svg>' time.svg || fail "the picture of the times is not whole"

# The same flags give the same bits; another seed does not.
runs language_model "${tiny[@]}" --steps 50 --out again
same_files linear0/model.safetensors again/model.safetensors
same_metrics linear0 again
runs language_model "${tiny[@]}" --steps 50 --seed 2 --out other
cmp -s linear0/model.safetensors other/model.safetensors && fail "the seed changes nothing"

# It learns: 19 characters, of which words tell the most.
runs language_model "${tiny[@]}" --steps 400 --dropout 0 --lr 0.01 --out learned
bits=$(grep -o '"bits_per_character": [0-9.e+-]*' learned/summary.json | cut -d' ' -f2)
awk -v bits="$bits" 'BEGIN { exit !(bits < 1.7) }' || { cat log; fail "it did not learn: $bits"; }

# --minutes ends a run in good order.
runs language_model "${tiny[@]}" --steps 1000000 --minutes 0.02 --out short
[ -s short/summary.json ] || fail "a run that ends by the clock has a summary"
