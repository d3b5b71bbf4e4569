# LINNET_CUDA: whether the library has a cuda device, and which. Sets LINNET_CUDA_KIND to none, nvcc or emulated, and
# gives linnet_emulate_cuda(target): the .cu files as C++ on the CPU (tests/cuda_on_cpu), whatever the kind.
set(LINNET_CUDA AUTO CACHE STRING "CUDA: AUTO (where nvcc is), ON, EMULATED (on the CPU, slowly: for tests) or OFF")
set_property(CACHE LINNET_CUDA PROPERTY STRINGS AUTO ON EMULATED OFF)
if(NOT LINNET_CUDA MATCHES "^(AUTO|ON|EMULATED|OFF)$")
  message(FATAL_ERROR "LINNET_CUDA is '${LINNET_CUDA}', wanted: AUTO, ON, EMULATED or OFF")
endif()
set(LINNET_CUDA_ARCHITECTURES "75;80;90" CACHE STRING "Compute capabilities to compile kernels for")

file(GLOB LINNET_CUDA_SOURCES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} core/*.cu ops/*.cu optim/*.cu)
set(LINNET_CUDA_KIND none)
if(LINNET_CUDA STREQUAL "EMULATED")
  set(LINNET_CUDA_KIND emulated)
elseif(NOT LINNET_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(LINNET_CUDA_KIND nvcc)
  elseif(LINNET_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LINNET_CUDA=ON, but there is no nvcc. Install the CUDA Toolkit \
(https://developer.nvidia.com/cuda-downloads) and put its bin folder on PATH, or pass -DCMAKE_CUDA_COMPILER=<nvcc>; \
or build without: -DLINNET_CUDA=OFF.")
  endif()
endif()
message(STATUS "CUDA: ${LINNET_CUDA_KIND} (LINNET_CUDA=${LINNET_CUDA})")

# linnet_emulate_cuda(target): an object library of the .cu files and of what they run on. Call it once a folder at most:
# that a .cu is C++ holds for the folder.
function(linnet_emulate_cuda target)
  file(GLOB emulation CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda_on_cpu/*.cpp)
  list(FILTER emulation EXCLUDE REGEX "/(main|[a-z]*_tests|defects)\\.cpp$")
  list(TRANSFORM LINNET_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE kernels)
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)
  add_library(${target} OBJECT ${kernels} ${emulation})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_definitions(${target} PRIVATE LINNET_CUDA_ON_CPU)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${LINNET_INCLUDE})
  target_link_libraries(${target} PRIVATE linnet_warnings linnet::blas)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# linnet_compile_cuda(target): an object library of the .cu files, by nvcc.
function(linnet_compile_cuda target)
  add_library(${target} OBJECT ${LINNET_CUDA_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${LINNET_CUDA_ARCHITECTURES}")
  if(CMAKE_VERSION VERSION_LESS 3.26)  # knows no C++20 for every nvcc
    target_compile_options(${target} PRIVATE -std=c++20)
  else()
    target_compile_features(${target} PRIVATE cuda_std_20)
  endif()
  target_include_directories(${target} PRIVATE ${LINNET_INCLUDE})
  target_compile_options(${target} PRIVATE --extended-lambda --expt-relaxed-constexpr -Xptxas=-warn-spills -Xcompiler=-Wall,-Wextra ${LINNET_CUDA_FLAGS})
endfunction()
