# hocket_module(name [DEPENDS hocket_other… library…] [PRIVATE library…] [WITHOUT file…])
#
# A folder of src/ becomes the static library hocket_<name> from every .cpp below it but those of WITHOUT. What may
# depend on what is the table in ARCHITECTURE.md, checked by tests/layers_test.py.
function(hocket_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE;WITHOUT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(TRANSFORM ARG_WITHOUT PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
  list(REMOVE_ITEM sources ${ARG_WITHOUT})
  set(target hocket_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE hocket_warnings ${ARG_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

# hocket_test(module [LIBS …] [MATCHING regex]): tests/<module>/*_test.cpp as one GoogleTest program <module>_test. A
# file whose name ends in _tiny_test.cpp or _real_test.cpp goes into a program of its own with that label instead of
# `unit`.
# MATCHING leaves out the files that do not.
function(hocket_test module)
  cmake_parse_arguments(ARG "" "MATCHING" "LIBS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${module}/*_test.cpp)
  if(ARG_MATCHING)
    list(FILTER all INCLUDE REGEX ${ARG_MATCHING})
  endif()
  foreach(label unit tiny real slow)
    set(sources ${all})
    if(label STREQUAL unit)
      list(FILTER sources EXCLUDE REGEX "_(tiny|real|slow)_test\\.cpp$")
      set(program ${module}_test)
    else()
      list(FILTER sources INCLUDE REGEX "_${label}_test\\.cpp$")
      set(program ${module}_${label}_test)
    endif()
    if(sources)
      add_executable(${program} ${sources})
      target_link_libraries(${program} PRIVATE ${ARG_LIBS} hocket_test_support hocket_warnings GTest::gtest_main GTest::gmock)
      target_compile_definitions(${program} PRIVATE HOCKET_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
                                                    HOCKET_LLAMA_SOURCE="${HOCKET_LLAMA_SOURCE}")
      # A real model runs on every core: a second test beside it would stall both at each barrier of their threads.
      set(processors 1)
      if(label STREQUAL real)
        cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
      endif()
      if(CMAKE_CROSSCOMPILING)  # starting the emulator for each test would take longer than the tests
        add_test(NAME ${program} COMMAND ${program})
        set_tests_properties(${program} PROPERTIES LABELS ${label} TIMEOUT 1200)
        continue()
      endif()
      gtest_discover_tests(${program} DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${label} TIMEOUT 600 PROCESSORS ${processors} ENVIRONMENT "${HOCKET_TEST_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()
