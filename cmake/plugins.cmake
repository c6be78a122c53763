# Shared objects for `--plugin`: the examples, and the test plug-ins that misbehave. Built as a user would build them.
function(assay_plugin name source)
  add_library(${name} MODULE ${source})
  set_target_properties(${name} PROPERTIES PREFIX "" C_STANDARD 99 C_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:C>:-O2;-Wall;-Wextra;-Wconversion>")
  target_link_libraries(${name} PRIVATE m)
  set_property(GLOBAL APPEND PROPERTY ASSAY_PLUGIN_TARGETS ${name})
endfunction()

assay_plugin(attention_plugin examples/attention_plugin.c)
if(ASSAY_HAVE_CUDA)
  assay_plugin(attention_plugin_cuda examples/attention_plugin.cu)
endif()
foreach(name misbehaves says no_symbol faulty_attention)
  assay_plugin(${name}_plugin tests/plugins/${name}.c)
endforeach()
