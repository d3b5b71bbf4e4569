# Finds SentencePiece and makes the target linnet::sentencepiece; where it is missing, LINNET_SENTENCEPIECE_MISSING says
# what to do. The build and the installed package both include this file.
find_path(LINNET_SENTENCEPIECE_INCLUDE sentencepiece_trainer.h DOC "The folder of SentencePiece's headers")
find_library(LINNET_SENTENCEPIECE sentencepiece DOC "SentencePiece")
find_library(LINNET_SENTENCEPIECE_TRAIN sentencepiece_train DOC "SentencePiece's trainer")
mark_as_advanced(LINNET_SENTENCEPIECE_INCLUDE LINNET_SENTENCEPIECE LINNET_SENTENCEPIECE_TRAIN)
set(LINNET_SENTENCEPIECE_MISSING "")
if(NOT LINNET_SENTENCEPIECE_INCLUDE OR NOT LINNET_SENTENCEPIECE OR NOT LINNET_SENTENCEPIECE_TRAIN)
  set(LINNET_SENTENCEPIECE_MISSING "linnet needs SentencePiece with its trainer, and found none. On Debian or Ubuntu: \
apt-get install libsentencepiece-dev. Elsewhere: install it and pass -DCMAKE_PREFIX_PATH=<where it is>.")
elseif(NOT TARGET linnet::sentencepiece)
  add_library(linnet::sentencepiece INTERFACE IMPORTED GLOBAL)
  target_include_directories(linnet::sentencepiece INTERFACE ${LINNET_SENTENCEPIECE_INCLUDE})
  target_link_libraries(linnet::sentencepiece INTERFACE ${LINNET_SENTENCEPIECE_TRAIN} ${LINNET_SENTENCEPIECE})
endif()
