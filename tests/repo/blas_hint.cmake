# Where OpenBLAS is missing, configuring stops with a hint. Missing is played by looking in none of the folders that hold it.
#   cmake -DSOURCE=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -DFOUND=<folder of cblas.h> -P blas_hint.cmake
set(hidden ${FOUND})
file(GLOB copies /usr/include/cblas.h /usr/include/*/cblas.h /usr/include/*/*/cblas.h /usr/local/include/cblas.h)
foreach(copy IN LISTS copies)
  get_filename_component(folder ${copy} DIRECTORY)
  list(APPEND hidden ${folder})
endforeach()
file(REMOVE_RECURSE ${WORK})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    "-DCMAKE_IGNORE_PATH=${hidden}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " words "${output}")
if(result EQUAL 0 OR NOT words MATCHES "needs OpenBLAS.*apt-get install libopenblas-openmp-dev")
  message(FATAL_ERROR "configuring without OpenBLAS ended with ${result} and gave no hint:\n${output}")
endif()
message("stopped, with the hint")
