# The tests on the cuda device: cuda/<file> on the emulated one (cuda_on_cpu), whatever CUDA the library has, and
# cuda_<order or sanitizer>/<file>. Where the library has real CUDA there is gpu/<file>, too; these count as skipped where
# there is no GPU.
if(LINNET_CUDA_KIND STREQUAL "nvcc")
  set(library linnet_without_cuda)
else()
  set(library linnet)
endif()

# The tests, and the emulation in the place of the library's cuda device.
function(linnet_add_emulated_tests name device)
  if(NOT TARGET ${name})
    add_executable(${name} ${test_parts})
    target_link_libraries(${name} PRIVATE ${library} linnet_warnings)
  endif()
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:${device}>)
  target_link_libraries(${name} PRIVATE linnet::blas)
endfunction()

set(emulated_tests linnet_tests)
if(LINNET_CUDA_KIND STREQUAL "nvcc")
  set(emulated_tests linnet_tests_emulated)
endif()
if(NOT LINNET_CUDA_KIND STREQUAL "emulated")
  linnet_emulate_cuda(linnet_emulated_cuda)
  linnet_add_emulated_tests(${emulated_tests} linnet_emulated_cuda)
endif()

# linnet_add_cuda_test(name program files settings...)
function(linnet_add_cuda_test name program files)
  add_test(NAME ${name} COMMAND ${program} --source-file=${files} --no-intro=true)
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "every case skipped" SKIP_RETURN_CODE 77
    ENVIRONMENT "LINNET_DEVICE=cuda;OMP_NUM_THREADS=1;${settings};${ARGN}")
endfunction()

# Not those of the CPU alone or of no device at all, and those that take minutes on the emulated device.
set(not_on_cuda "^(data|repo)/" "^core/test_(atomic_file|dispatch|few_rows|math|storage|threads)"
  "^ops/test_linear_attention_threads"
  "^models/test_(decode|generate_memory|steady_step)\\.cpp")
list(JOIN not_on_cuda "|" not_on_cuda)
set(device_tests ${test_sources})
list(FILTER device_tests EXCLUDE REGEX "${not_on_cuda}")
foreach(source IN LISTS device_tests)
  string(REGEX REPLACE "\\.cpp$" "" name ${source})
  linnet_add_cuda_test(cuda/${name} ${emulated_tests} *${source} LINNET_CACHE=off)
  if(LINNET_CUDA_KIND STREQUAL "nvcc")
    linnet_add_cuda_test(gpu/${name} linnet_tests *${source})
  endif()
endforeach()

add_test(NAME cuda_without_gpu COMMAND ${emulated_tests} --source-file=*core/test_cuda_device.cpp --no-intro=true)
set_tests_properties(cuda_without_gpu PROPERTIES ENVIRONMENT "CUDA_ON_CPU_DEVICES=0")

# The tests of kernels once more: with their threads in another order, and compiled under a sanitizer, where the rest is as
# it was. The thread sanitizer is slow: it gets the small ones.
set(small_tests *ops/test_kernels_cuda.cpp *optim/test_clip.cpp *optim/test_update.cpp)
set(kernel_tests ${small_tests} *ops/test_softmax.cpp *ops/test_layer_norm.cpp *ops/test_cross_entropy.cpp
  *ops/test_dropout.cpp *ops/test_embedding.cpp *ops/test_reduce.cpp *ops/test_cumsum.cpp *ops/test_shape_ops.cpp
  *ops/test_matmul.cpp *ops/test_elementwise.cpp *ops/test_linear_attention_cuda.cpp
  *ops/test_linear_attention_bf16_cuda.cpp *ops/test_softmax_attention_cuda.cpp *ops/test_lsh_attention_cuda.cpp
  *ops/test_clustered_attention_cuda.cpp *models/test_sampling.cpp)
# linnet_add_kernel_tests(group program files settings...): one entry a file.
function(linnet_add_kernel_tests group program files)
  foreach(file IN LISTS files)
    string(REGEX REPLACE "\\*[a-z]+/test_(.+)\\.cpp" "\\1" name ${file})
    linnet_add_cuda_test(${group}/${name} ${program} ${file} LINNET_CACHE=off ${ARGN})
  endforeach()
endfunction()
foreach(order reverse random)
  linnet_add_kernel_tests(cuda_${order} ${emulated_tests} "${kernel_tests}" CUDA_ON_CPU_ORDER=${order})
endforeach()
if(NOT LINNET_CUDA_KIND STREQUAL "emulated")
  foreach(flavour IN LISTS CUDA_ON_CPU_FLAVOURS)
    linnet_emulate_cuda(linnet_emulated_cuda_${flavour})
    target_compile_options(linnet_emulated_cuda_${flavour} PRIVATE ${CUDA_ON_CPU_${flavour}_FLAGS})
    linnet_add_emulated_tests(linnet_tests_${flavour} linnet_emulated_cuda_${flavour})
    target_link_options(linnet_tests_${flavour} PRIVATE ${CUDA_ON_CPU_${flavour}_FLAGS})
  endforeach()
  if("address" IN_LIST CUDA_ON_CPU_FLAVOURS)  # what is not instrumented may give memory back by another name
    linnet_add_kernel_tests(cuda_address linnet_tests_address "${kernel_tests}"
      ASAN_OPTIONS=allocator_may_return_null=1:alloc_dealloc_mismatch=0)
  endif()
  if("thread" IN_LIST CUDA_ON_CPU_FLAVOURS)
    linnet_add_kernel_tests(cuda_thread linnet_tests_thread "${small_tests}"
      TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0)
  endif()
endif()
