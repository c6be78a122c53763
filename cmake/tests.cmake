# One test program per tests/**/*_test.cc and oracle/ops/*/*_test.cc; its name is its path.
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(assay_test_flags INTERFACE)
target_compile_definitions(assay_test_flags INTERFACE
  ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ASSAY_PROGRAM="$<TARGET_FILE:assay>" ASSAY_MUTANTS_PROGRAM="$<TARGET_FILE:assay_mutants>")

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cc)
foreach(source ${test_sources})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${source})
  string(REGEX REPLACE "\\.cc$" "" name ${name})
  string(REPLACE "/" "." name ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ASSAY_PARTS} assay_test_flags GTest::gtest GTest::gtest_main)
  if(CUDA_INCLUDE AND name MATCHES "cuda")
    target_include_directories(${name} SYSTEM PRIVATE ${CUDA_INCLUDE})
    target_compile_definitions(${name} PRIVATE ASSAY_HAVE_CUDA_HEADERS=1)
  endif()
  add_test(NAME ${name} COMMAND ${name})
endforeach()
