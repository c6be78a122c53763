# One test program per tests/**/*_test.cc, the lint tests, and one object per header that shows it stands alone.
find_package(GTest REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# A Python with NumPy for the tests that need one: the first on the path may be without while the system's has it.
set(ASSAY_PYTHON "")
foreach(python ${Python3_EXECUTABLE} python3 /usr/bin/python3)
  execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE without OUTPUT_QUIET ERROR_QUIET)
  if(NOT without AND NOT ASSAY_PYTHON)
    set(ASSAY_PYTHON ${python})
  endif()
endforeach()
if(NOT ASSAY_PYTHON)
  message(STATUS "no Python with NumPy: tests that take a dump from NumPy are skipped")
endif()

add_library(assay_test_flags INTERFACE)
target_compile_definitions(assay_test_flags INTERFACE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  ASSAY_PROGRAM="$<TARGET_FILE:assay>" ASSAY_MUTANTS_PROGRAM="$<TARGET_FILE:assay_mutants>" ASSAY_PYTHON="${ASSAY_PYTHON}"
  ASSAY_PLUGINS="${CMAKE_BINARY_DIR}/plugins" ASSAY_FAKE_ENGINE="$<TARGET_FILE:fake_engine>"
  ASSAY_FUZZ_REPLAY="$<TARGET_FILE:assay_fuzz_replay>")

# All host parts once, instead of in every test program, where they are large.
set(host ${ASSAY_HOST_PARTS})
if(ASSAY_SANITIZE)
  add_library(assay_host SHARED)
  target_link_libraries(assay_host PRIVATE ${ASSAY_HOST_PARTS} PUBLIC assay_flags)
  set(host assay_host)
endif()

# Stands for assay_fuzz where tests need a crash, a hang or a kill at a known place.
add_executable(fake_engine ${CMAKE_SOURCE_DIR}/tests/fuzz/fake_engine.cc)
target_link_libraries(fake_engine PRIVATE ${host})

# Tests see the host kernels only, but for those in tests/device: most ask every kernel that is linked in.
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cc)
if(ASSAY_HAVE_CUDA)
  file(GLOB test_device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/device/*.cu)
  assay_device_part(ASSAY_TEST_DEVICE_PARTS assay_test_device ${test_device_sources})
else()
  list(FILTER test_sources EXCLUDE REGEX "/tests/device/")
endif()
foreach(source ${test_sources})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${source})
  string(REGEX REPLACE "\\.cc$" "" name ${name})
  string(REPLACE "/" "." name ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${host} assay_test_flags GTest::gtest GTest::gtest_main)
  if(ASSAY_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)  # halves their compile time; what they call is optimised
  endif()
  if(source MATCHES "/tests/device/")
    target_link_libraries(${name} PRIVATE ${ASSAY_DEVICE_PARTS} ${ASSAY_TEST_DEVICE_PARTS})
  endif()
  if(CUDA_INCLUDE AND name MATCHES "cuda")
    target_include_directories(${name} SYSTEM PRIVATE ${CUDA_INCLUDE})
    target_compile_definitions(${name} PRIVATE ASSAY_HAVE_CUDA_HEADERS=1)
  endif()
  add_test(NAME ${name} COMMAND ${name})
endforeach()

# The longest start first, so that no core waits for one of them at the end.
set_tests_properties(failure_catalog.catalogue_test failure_catalog.fresh_address_test failure_catalog.planted_modes_test
  failure_catalog.weight_modes_test fuzz.metamorphic_test fuzz.kill_matrix_test cli.plugin_test fuzz.suite_test
  fuzz.confusion_test fuzz.fingerprint_test kernels.conventions_test oracle.reference_test PROPERTIES COST 100)

get_property(plugins GLOBAL PROPERTY ASSAY_PLUGIN_TARGETS)
add_dependencies(cli.plugin_test assay assay_mutants ${plugins})
add_dependencies(fuzz.campaign_test fake_engine)
add_dependencies(cli.fuzz_test assay assay_mutants fake_engine)
add_dependencies(fuzz.confusion_test assay assay_mutants ${plugins})
add_dependencies(cli.fuzz_engine_test assay_fuzz_replay ${plugins})
add_dependencies(fuzz.corpus_test assay_mutants)

if(ASSAY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC's -fsanitize makes -Wmaybe-uninitialized see ghosts inside std::regex, as its manual warns.
  target_compile_options(reports.environment_test PRIVATE -Wno-maybe-uninitialized)
endif()

# Links with the objects of both programs.
add_test(NAME failure_catalog.scratch_mode
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/failure_catalog/scratch_mode.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(failure_catalog.scratch_mode PROPERTIES SKIP_RETURN_CODE 77)

# Every header compiles alone. Those with a source of the same name do there, where they come first (lint.headers); the others here,
# without optimisation or sanitizers: only the parse counts.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/oracle/*.h
  ${CMAKE_SOURCE_DIR}/include/*.h ${CMAKE_SOURCE_DIR}/plugin/*.h ${CMAKE_SOURCE_DIR}/cases/*.h ${CMAKE_SOURCE_DIR}/kernels/*.h ${CMAKE_SOURCE_DIR}/failure_catalog/*.h
  ${CMAKE_SOURCE_DIR}/reports/*.h ${CMAKE_SOURCE_DIR}/fuzz/*.h ${CMAKE_SOURCE_DIR}/cli/*.h ${CMAKE_SOURCE_DIR}/tests/*.h)
set(alone_sources "")
foreach(header ${headers})
  string(REGEX REPLACE "\\.h$" ".cc" source ${header})
  if(EXISTS ${CMAKE_SOURCE_DIR}/${source})
    continue()
  endif()
  string(REGEX REPLACE "[/.]" "_" alone ${header})
  set(alone ${CMAKE_BINARY_DIR}/headers/${alone}.cc)
  set(text "#include \"${header}\"\n")
  set(old "")
  if(EXISTS ${alone})
    file(READ ${alone} old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE ${alone} "${text}")
  endif()
  list(APPEND alone_sources ${alone})
endforeach()
add_library(assay_headers_alone OBJECT ${alone_sources})
target_include_directories(assay_headers_alone PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(assay_headers_alone PRIVATE -Wall -Wextra -Wconversion -O0 -g0)
target_compile_definitions(assay_headers_alone PRIVATE ASSAY_MUTANTS=1 ASSAY_SOURCE_DIR="" ASSAY_PROGRAM="" ASSAY_MUTANTS_PROGRAM="" ASSAY_PYTHON="" ASSAY_PLUGINS="" ASSAY_FUZZ_REPLAY="")
target_link_libraries(assay_headers_alone PRIVATE nlohmann_json::nlohmann_json ${FMT_TARGET} CLI11::CLI11 GTest::gtest Boost::headers)

set(lint ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/lint/lint.py)
foreach(check layering sizes first_lines headers flags names)
  add_test(NAME lint.${check} COMMAND ${lint} ${check})
endforeach()
foreach(part oracle cases kernels mutant_kernels)
  list(APPEND exact_objects $<TARGET_OBJECTS:assay_${part}>)
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/exact_objects.txt CONTENT "$<JOIN:${exact_objects},\n>\n")
add_test(NAME lint.libm COMMAND ${lint} libm ${CMAKE_BINARY_DIR}/exact_objects.txt)
add_test(NAME lint.registry COMMAND ${lint} registry $<TARGET_FILE:assay>)
add_test(NAME lint.self COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/lint/lint_test.py)
