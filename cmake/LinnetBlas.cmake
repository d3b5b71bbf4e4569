# Finds OpenBLAS (its OpenMP build where there is one) and makes the target linnet_blas; stops with a hint where it is missing.
find_path(LINNET_CBLAS_INCLUDE cblas.h
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/include/openblas
  PATH_SUFFIXES openblas-openmp openblas)
find_library(LINNET_OPENBLAS openblas
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp
  PATH_SUFFIXES openblas-openmp openblas)
if(NOT LINNET_CBLAS_INCLUDE OR NOT LINNET_OPENBLAS)
  message(FATAL_ERROR "linnet needs OpenBLAS with its C interface (cblas.h), and found none. On Debian or Ubuntu: "
    "apt-get install libopenblas-openmp-dev. Elsewhere: install OpenBLAS and pass -DCMAKE_PREFIX_PATH=<where it is>.")
endif()
add_library(linnet_blas INTERFACE)
target_include_directories(linnet_blas SYSTEM INTERFACE $<BUILD_INTERFACE:${LINNET_CBLAS_INCLUDE}>)
target_link_libraries(linnet_blas INTERFACE ${LINNET_OPENBLAS})
