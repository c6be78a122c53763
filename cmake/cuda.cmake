# Finds the CUDA compiler, and makes the device code into object libraries (assay_device_parts).
#
# ASSAY_CUDA: AUTO uses nvcc where it is found, ON requires it, OFF leaves device code out. Sets ASSAY_HAVE_CUDA.
set(ASSAY_CUDA AUTO CACHE STRING "device code: AUTO (where nvcc is found), ON (required), OFF")
set(ASSAY_HAVE_CUDA OFF)
if(NOT ASSAY_CUDA STREQUAL "OFF")
  find_program(ASSAY_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(ASSAY_NVCC)
    # check_language tries the compiler that the environment names, and sets CMAKE_CUDA_COMPILER if it works.
    set(ENV{CUDACXX} ${ASSAY_NVCC})
    set(ENV{CUDAHOSTCXX} ${CMAKE_CXX_COMPILER})
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(ASSAY_HAVE_CUDA ON)
    endif()
  endif()
  if(ASSAY_HAVE_CUDA)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90a-real)  # one, to keep the build short; the portable preset names more
    endif()
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    enable_language(CUDA)
    # The host compiler's own folders must not come again as -isystem: its headers find their C relatives by order.
    list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows no standard beyond 17 for nvcc
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    find_package(CUDAToolkit REQUIRED)
  elseif(ASSAY_CUDA STREQUAL "AUTO")
    message(STATUS "no CUDA compiler that works: device kernels are left out")
  else()
    message(FATAL_ERROR "ASSAY_CUDA is ${ASSAY_CUDA} and no working nvcc is found (PATH, CUDA_HOME)")
  endif()
endif()

# assay_device_part(NAME SOURCE...): one object library; its name is appended to PARTS of the caller unless it is empty.
function(assay_device_part parts name)
  if(NOT ARGN)
    return()
  endif()
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PUBLIC assay_flags CUDA::cudart_static)
  target_compile_definitions(${name} PUBLIC ASSAY_HAVE_CUDA=1)
  # One rounding per written operation on the device too: a fused multiply-add is written fmaf.
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-lineinfo;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${ASSAY_WERROR}>>:-Werror=all-warnings>")
  set(${parts} ${${parts}} ${name} PARENT_SCOPE)
endfunction()

# Sets ASSAY_DEVICE_PARTS and ASSAY_MUTANT_DEVICE_PARTS, empty without CUDA. Sources that ask for planted faults are
# compiled once for each program, the others once for both: device code is slow to compile.
macro(assay_device_parts)
  set(ASSAY_DEVICE_PARTS "")
  set(ASSAY_MUTANT_DEVICE_PARTS "")
  if(ASSAY_HAVE_CUDA)
    file(GLOB device_sources CONFIGURE_DEPENDS oracle/device/*.cu oracle/device/*.cc kernels/device/*.cu kernels/device/*.cc
      kernels/*/cuda/*.cu kernels/*/cuda/*.cc)
    file(GLOB device_mutants CONFIGURE_DEPENDS failure_catalog/mutants/cuda/*.cc
      failure_catalog/mutants/cuda/*.cu)
    set(device_shared "")
    set(device_faulty "")
    foreach(source ${device_sources})
      file(STRINGS ${source} asks REGEX "\"kernels/fault\\.h\"")
      if(asks)
        list(APPEND device_faulty ${source})
      else()
        list(APPEND device_shared ${source})
      endif()
    endforeach()
    # What `assay bench kernels` loads beside PyTorch holds these too.
    set(launches ${device_shared})
    list(FILTER launches INCLUDE REGEX "/kernels/attention/cuda/.*\\.cu$")
    list(REMOVE_ITEM device_shared ${launches})
    assay_device_part(shared_parts assay_attention_launches ${launches})
    set_target_properties(assay_attention_launches PROPERTIES POSITION_INDEPENDENT_CODE ON)
    assay_device_part(shared_parts assay_device ${device_shared})
    assay_device_part(ASSAY_DEVICE_PARTS assay_device_kernels ${device_faulty})
    assay_device_part(ASSAY_MUTANT_DEVICE_PARTS assay_mutant_device_kernels ${device_faulty} ${device_mutants})
    if(TARGET assay_mutant_device_kernels)
      target_compile_definitions(assay_mutant_device_kernels PUBLIC ASSAY_MUTANTS=1)
    endif()
    list(APPEND ASSAY_DEVICE_PARTS ${shared_parts})
    list(APPEND ASSAY_MUTANT_DEVICE_PARTS ${shared_parts})
  endif()
endmacro()
