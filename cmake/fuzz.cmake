# The fuzz program, for the sound kernels and for those with planted faults: assay_fuzz and assay_mutants_fuzz with libFuzzer,
# where its runtime is found; in test builds assay_fuzz_replay with a plain main too, which runs every target over
# fuzz/corpus/<target>.
file(GLOB target_sources CONFIGURE_DEPENDS fuzz/targets/*.cc)
list(FILTER target_sources EXCLUDE REGEX "plain_main")
add_library(assay_targets OBJECT ${target_sources})
target_link_libraries(assay_targets PUBLIC assay_flags)
set(ASSAY_MUTANT_PARTS assay_oracle assay_cases assay_mutant_kernels assay_plugin assay_failure_catalog assay_reports assay_fuzzing
  ${ASSAY_MUTANT_DEVICE_PARTS})

# libFuzzer's runtime is a plain archive that any compiler can link; only clang can instrument code for coverage. Not with
# GCC's sanitizers: the archive expects clang's.
set(ASSAY_FUZZER "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(ASSAY_FUZZER -fsanitize=fuzzer)
elseif(NOT ASSAY_SANITIZE)
  file(GLOB archives /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a)
  list(SORT archives COMPARE NATURAL)
  foreach(archive ${archives})
    set(ASSAY_FUZZER ${archive})
  endforeach()
endif()
if(ASSAY_FUZZER)
  add_executable(assay_fuzz $<TARGET_OBJECTS:assay_targets>)
  target_link_libraries(assay_fuzz PRIVATE ${ASSAY_PARTS} ${ASSAY_FUZZER})
  add_executable(assay_mutants_fuzz $<TARGET_OBJECTS:assay_targets>)
  target_link_libraries(assay_mutants_fuzz PRIVATE ${ASSAY_MUTANT_PARTS} ${ASSAY_FUZZER})
else()
  message(STATUS "no libFuzzer runtime (Debian: libclang-rt-*-dev): assay_fuzz is left out")
endif()

if(ASSAY_TESTS)
  if(TARGET assay_fuzz)
    add_dependencies(cli.fuzz_test assay_fuzz assay_mutants_fuzz)
  endif()
  add_executable(assay_fuzz_replay fuzz/targets/plain_main.cc $<TARGET_OBJECTS:assay_targets>)
  target_link_libraries(assay_fuzz_replay PRIVATE ${ASSAY_HOST_PARTS})
  # Mutated inputs, and how many bytes of what libFuzzer reads they must set.
  foreach(test attention,300,150 softmax,300,60 merge,300,40 tier_arb,60,40 case_parser,2000,0 safetensors,2000,0
      manifest,2000,0 worker_protocol,2000,0)
    string(REPLACE "," ";" test ${test})
    list(GET test 0 name)
    list(GET test 1 runs)
    list(GET test 2 signal)
    add_test(NAME fuzz.replay_${name}
      COMMAND assay_fuzz_replay ${name} -runs=${runs} -signal=${signal} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  endforeach()
endif()
