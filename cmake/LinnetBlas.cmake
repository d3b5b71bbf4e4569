# Finds OpenBLAS, its OpenMP build where there is one, and makes the target linnet::blas; where it is missing,
# LINNET_BLAS_MISSING says what to do. The build and the installed package both include this file.
find_path(LINNET_CBLAS_INCLUDE cblas.h
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/include/openblas
  PATH_SUFFIXES openblas-openmp openblas
  DOC "The folder of OpenBLAS's cblas.h")
find_library(LINNET_OPENBLAS openblas
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp
  PATH_SUFFIXES openblas-openmp openblas
  DOC "OpenBLAS")
mark_as_advanced(LINNET_CBLAS_INCLUDE LINNET_OPENBLAS)
set(LINNET_BLAS_MISSING "")
if(NOT LINNET_CBLAS_INCLUDE OR NOT LINNET_OPENBLAS)
  set(LINNET_BLAS_MISSING "linnet needs OpenBLAS with its C interface (cblas.h), and found none. On Debian or Ubuntu: \
apt-get install libopenblas-openmp-dev. Elsewhere: install OpenBLAS and pass -DCMAKE_PREFIX_PATH=<where it is>.")
elseif(NOT TARGET linnet::blas)
  add_library(linnet::blas INTERFACE IMPORTED GLOBAL)
  target_include_directories(linnet::blas INTERFACE ${LINNET_CBLAS_INCLUDE})
  target_link_libraries(linnet::blas INTERFACE ${LINNET_OPENBLAS})
endif()
