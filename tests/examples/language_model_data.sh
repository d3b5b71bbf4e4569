# A text that repeats itself, and flags of a model that trains in moments.
language_model() { "$bin/language_model" "$@"; }
verses() {  # verses SEED LINES
  awk -v seed="$1" -v lines="$2" 'BEGIN {
    srand(seed)
    split("der die käse hase nase vase böse gras", word)
    for (i = 0; i < lines; ++i) {
      line = ""
      for (n = 2 + int(4 * rand()); n > 0; --n) line = line " " word[1 + int(8 * rand())]
      print substr(line, 2)
    }
  }'
}
verses 1 150 >text.txt
shape=(--layers 1 --heads 2 --dim 16 --hidden 32 --context 16 --batch 4 --threads 1)
small=("${shape[@]}" --warmup 5 --evaluate-every 20)
tiny=(--text text.txt "${small[@]}")
