# translate on a language of its own: it trains, keeps the best, translates, and is a function of its flags.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/translate_data.sh"
keys='attention beams best_epoch device epochs parameters peak_bytes seconds seed steps test_bleu test_bleu_greedy threads
tokens_per_second validation_bleu'

for attention in linear softmax; do
  runs translate "${tiny[@]}" --attention $attention --epochs 2 --out $attention
  grep -q '^step ' log || fail "no progress in a pipe"
  [ "$(grep -c '^Epoch [12]: validation loss [0-9.]*, BLEU [0-9.]*' log)" = 2 ] || { cat log; fail "two validations"; }
  grep -q 'On test_2016_flickr, the model of epoch' log || fail "no word on the test"
  found=$(grep -o '^  "[a-z_]*"' $attention/summary.json | tr -d ' "' | sort | tr '\n' ' ')
  [ "$found" = "$(echo $keys) " ] || fail "keys of summary.json: $found"
  [ "$(cut -d, -f2 $attention/validation.csv | tr '\n' ' ')" = 'epoch 1 2 ' ] || fail "rows of validation.csv"
  grep -q 'BLEU' $attention/curve.svg && grep -q '</svg>' $attention/curve.svg || fail "curve.svg is not whole"
  for file in settings.json checkpoint.safetensors model.safetensors tokenizer.model metrics.csv; do
    [ -s $attention/$file ] || fail "no $file"
  done
  [ -z "$(find $attention -name '*.tmp*')" ] || fail "a temporary file stayed"

  # --evaluate finds what the training found.
  runs translate --evaluate $attention
  bleu=$(grep -o '"test_bleu": [0-9.e+-]*' $attention/summary.json | cut -d' ' -f2)
  grep -q "^BLEU $(printf %.2f "$bleu") " log || { cat log; fail "--evaluate finds another BLEU than $bleu"; }

  # A file and standard input, one line each, in their order; a line without text gives one.
  printf 'one two\n\nsix\n' >lines
  runs translate --translate lines --from $attention
  [ "$(wc -l <log)" = 3 ] && [ -z "$(sed -n 2p log)" ] || { cat log; fail "three lines, the second empty"; }
  cp log by_file
  from_input() { translate --from $attention <lines; }
  runs from_input
  same_files log by_file
  runs translate --translate lines --from $attention --temperature 0.8 --top-k 5 --top-p 0.9 --seed 3
  cp log drawn
  runs translate --translate lines --from $attention --temperature 0.8 --top-k 5 --top-p 0.9 --seed 3
  same_files log drawn

  for which in '' '--layer 1' '--head 2' '--layer 1 --head 1'; do
    # shellcheck disable=SC2086  # flags
    runs translate --from $attention --show-attention 'one two <three>' --svg attention.svg $which
    grep -q '</svg>' attention.svg || fail "the picture of the attention is not whole"
    grep -c '<rect class=.dot' attention.svg >/dev/null || fail "no cells"
  done
done

# The same flags give the same bits; another seed does not.
runs translate "${tiny[@]}" --epochs 2 --out again
same_files linear/model.safetensors again/model.safetensors
same_files linear/tokenizer.model again/tokenizer.model
same_metrics linear again
runs translate "${tiny[@]}" --epochs 2 --seed 2 --out other
cmp -s linear/model.safetensors other/model.safetensors && fail "the seed changes nothing"

# It learns: this language is a dictionary.
runs translate --data data "${shape[@]}" --dim 32 --vocab 60 --attention softmax --epochs 30 --dropout 0 --smoothing 0 \
  --lr 0.01 --warmup 60 --average 0.9 --out learned
bleu=$(grep -o '"test_bleu": [0-9.e+-]*' learned/summary.json | cut -d' ' -f2)
awk -v bleu="$bleu" 'BEGIN { exit !(bleu > 80) }' || { cat log; fail "it did not learn: BLEU $bleu"; }

# --minutes ends a run in good order.
runs translate "${tiny[@]}" --epochs 100000 --minutes 0.02 --out short
[ -s short/summary.json ] || fail "a run that ends by the clock has a summary"

# The other attentions, of the encoder at least.
for attention in 'local --window 4' efficient 'lsh --buckets 4 --chunk 4' 'clustered --clusters 3' \
    'improved_clustered --clusters 3 --topk 2' 'linear --feature-map favor'; do
  run=other-${attention%% *}
  runs translate "${tiny[@]}" --attention $attention --epochs 1 --out $run
  printf 'one two\n' | runs translate --from $run
  [ "$(wc -l <log)" = 1 ] || { cat log; fail "$attention translates a line"; }
done
