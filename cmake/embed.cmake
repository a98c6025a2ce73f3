# wl_embed(LIBRARY NAMESPACE::FUNCTION HEADER FILES...): defines `std::string_view FUNCTION()`, which HEADER declares and which
# returns the text of all FILES, one after the other. The target wl_LIBRARY links the function. Run with `cmake -P`, this script writes
# the function's C++ source.
# wl_embed_list(...): defines `std::span<const std::string_view> FUNCTION()`, which returns one entry for each file: its text.
# wl_embed_named(...): defines a function that returns a span of pairs: a file's name without its folder, and its text.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text)
  foreach(input ${inputs})
    file(READ ${input} content)
    # Compilers may limit a string literal to 64 KiB, so each file is one literal, and adjacent literals are joined.
    if(form STREQUAL named)
      get_filename_component(name ${input} NAME)
      string(APPEND text "{\"${name}\", R\"WL_EMBED(${content})WL_EMBED\"},\n")
    else()
      string(APPEND text "R\"WL_EMBED(${content})WL_EMBED\"\n")
    endif()
  endforeach()
  string(REGEX REPLACE "::[^:]*$" "" namespace ${symbol})
  string(REGEX REPLACE "^.*::" "" function ${symbol})
  if(form STREQUAL named)
    set(pair "std::pair<std::string_view, std::string_view>")
    set(body "std::span<const ${pair}> ${function}() {\n  static constexpr ${pair} kTexts[] = {\n${text}};\n  return kTexts;\n}")
  elseif(form STREQUAL list)
    string(REPLACE ")WL_EMBED\"\n" ")WL_EMBED\",\n" text "${text}")
    set(body "std::span<const std::string_view> ${function}() {\n  static constexpr std::string_view kTexts[] = {\n${text}};\n  return kTexts;\n}")
  else()
    set(body "std::string_view ${function}() {\n  return\n${text};\n}")
  endif()
  file(WRITE ${output} "#include \"${header}\"\n\nnamespace ${namespace} {\n${body}\n}\n")
  return()
endif()

set(WARPLOOM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(wl_embed_list library symbol header)
  wl_embed_as(list ${library} ${symbol} ${header} ${ARGN})
endfunction()

function(wl_embed library symbol header)
  wl_embed_as(whole ${library} ${symbol} ${header} ${ARGN})
endfunction()

function(wl_embed_named library symbol header)
  wl_embed_as(named ${library} ${symbol} ${header} ${ARGN})
endfunction()

function(wl_embed_as form library symbol header)
  string(REGEX REPLACE "^.*::" "" function ${symbol})
  set(output ${PROJECT_BINARY_DIR}/generated/embed/${function}.cpp)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -Doutput=${output} -Dsymbol=${symbol} -Dheader=${header} -Dform=${form} "-Dinputs=${ARGN}" -P ${WARPLOOM_EMBED_SCRIPT}
    DEPENDS ${ARGN} ${WARPLOOM_EMBED_SCRIPT} VERBATIM)
  add_library(wl_${function} STATIC ${output})
  target_include_directories(wl_${function} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(wl_${function} PRIVATE ${WARPLOOM_WARNINGS})
  get_target_property(type wl_${library} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    target_link_libraries(wl_${library} INTERFACE wl_${function})
  else()
    target_link_libraries(wl_${library} PUBLIC wl_${function})
  endif()
endfunction()
