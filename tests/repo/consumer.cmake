# Installs linnet, moves the installed copy, and builds and runs tests/consumer against it.
#   cmake -DSHARED=ON|OFF -DSOURCE=... -DBUILD=<the build that runs the tests> -DBUILD_IS_SHARED=... -DWORK=... -DGENERATOR=...
#         -DCOMPILER=... -P consumer.cmake
# Where the tests' own build is of the other kind, it builds the library once more, without optimisation.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nended with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(common -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER})
if((SHARED AND NOT BUILD_IS_SHARED) OR (BUILD_IS_SHARED AND NOT SHARED))
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/library ${common} -DBUILD_SHARED_LIBS=${SHARED} -DCMAKE_BUILD_TYPE=Debug
    -DLINNET_BUILD_TESTS=OFF -DLINNET_BUILD_EXAMPLES=OFF -DLINNET_CUDA=OFF)
  run(${CMAKE_COMMAND} --build ${WORK}/library)
  set(BUILD ${WORK}/library)
endif()

file(REMOVE_RECURSE ${WORK}/prefix "${WORK}/moved away" ${WORK}/consumer)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(RENAME ${WORK}/prefix "${WORK}/moved away")
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${WORK}/consumer ${common} "-DCMAKE_PREFIX_PATH=${WORK}/moved away")
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer)
message("${output}")
if(NOT output MATCHES "6 7 8 9 0 1 2 3 4 5 6 7")
  message(FATAL_ERROR "the consumer, the README's program, has not learned to count")
endif()

file(STRINGS ${WORK}/consumer/CMakeCache.txt found REGEX "^linnet_DIR:")
if(NOT found MATCHES "moved away")
  message(FATAL_ERROR "the consumer found another linnet: ${found}")
endif()
file(GLOB_RECURSE libraries "${WORK}/moved away/liblinnet.*")
list(GET libraries 0 library)
if(SHARED AND NOT library MATCHES "\\.(so|dylib)" OR NOT SHARED AND NOT library MATCHES "\\.a$")
  message(FATAL_ERROR "the wrong kind of library: ${libraries}")
endif()
