# Libraries of every build: distribution packages, and ggml (tensors and CPU kernels), which is built from a pinned source
# archive, the llama.cpp tree. cmake/program_dependencies.cmake has those of the program alone.
#
# scripts/fetch.py downloads and verifies the archives into the cache folder and prints where they are. It is asked again
# at every configuration, so that a cache folder that moved, or a new pin, is followed.

find_package(Python3 3.9 COMPONENTS Interpreter)

function(hocket_fetched_source variable what probe)
  set(dir ${${variable}})
  if(NOT dir)
    if(NOT Python3_FOUND)
      message(FATAL_ERROR "Python 3.9 is needed to fetch ${what}; or give -D${variable}=DIR to use an unpacked tree")
    endif()
    execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/fetch.py ${what}
                    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rc)
    if(NOT rc EQUAL 0)
      message(FATAL_ERROR "scripts/fetch.py ${what} failed; give -D${variable}=DIR to use an unpacked tree")
    endif()
    set(${variable} ${dir} PARENT_SCOPE)
  endif()
  if(NOT EXISTS ${dir}/${probe})
    message(FATAL_ERROR "${variable}=${dir} is not an unpacked ${what} tree (no ${probe})")
  endif()
endfunction()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/fetch.py)
hocket_fetched_source(HOCKET_LLAMA_SOURCE llama ggml/CMakeLists.txt)

find_package(Threads REQUIRED)
if(HOCKET_BUILD_PROGRAM)
  find_package(fmt REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(nlohmann_json REQUIRED)
else()
  # Headers alone, so that another machine's libraries are not needed.
  foreach(header fmt/format.h spdlog/spdlog.h nlohmann/json.hpp)
    string(MAKE_C_IDENTIFIER HOCKET_HAS_${header} found)
    find_path(${found} ${header} REQUIRED)
  endforeach()
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
  add_library(spdlog::spdlog INTERFACE IMPORTED)
  target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(spdlog::spdlog INTERFACE fmt::fmt Threads::Threads)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
endif()

# A library's source is not ours to judge: no warnings and, where that is chosen, no undefined-behaviour sanitizer, which
# multiplies the time of compiling it.
function(hocket_dependency)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE -w)
    if(HOCKET_SANITIZE)
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  endforeach()
endfunction()

# ---- ggml
if(HOCKET_SYSTEM_GGML)
  find_package(ggml REQUIRED)
else()
  set(BUILD_SHARED_LIBS OFF)
  set(GGML_NATIVE ${HOCKET_NATIVE} CACHE BOOL "" FORCE)
  set(GGML_OPENMP OFF CACHE BOOL "" FORCE)    # ggml's own thread pool: it can sleep, and ThreadSanitizer sees it
  set(GGML_LLAMAFILE ON CACHE BOOL "" FORCE)
  set(GGML_BLAS OFF CACHE BOOL "" FORCE)
  set(GGML_VULKAN ${HOCKET_VULKAN} CACHE BOOL "" FORCE)
  set(GGML_CCACHE OFF CACHE BOOL "" FORCE)    # cmake/compiler.cmake sets the launcher for every target
  set(GGML_BUILD_TESTS OFF CACHE BOOL "" FORCE)
  set(GGML_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)
  add_subdirectory(${HOCKET_LLAMA_SOURCE}/ggml ${CMAKE_BINARY_DIR}/ggml EXCLUDE_FROM_ALL SYSTEM)
  hocket_dependency(ggml ggml-base ggml-cpu)
  if(HOCKET_SANITIZE)
    target_compile_options(ggml-cpu PRIVATE -O2)  # every test of a model waits for these loops
    # Its searches for the best scales take minutes when each access is watched; they share nothing between threads.
    set_source_files_properties(${HOCKET_LLAMA_SOURCE}/ggml/src/ggml-quants.c TARGET_DIRECTORY ggml-base
      PROPERTIES COMPILE_OPTIONS "-O3;-fno-sanitize=all")
  endif()
endif()

if(HOCKET_BUILD_PROGRAM)
  include(cmake/program_dependencies.cmake)
endif()

# ---- tests and benches
if(HOCKET_BUILD_TESTS)
  if(CMAKE_CROSSCOMPILING)
    set(HOCKET_GOOGLETEST_SOURCE /usr/src/googletest CACHE PATH "Where the distribution has GoogleTest's source")
    add_subdirectory(${HOCKET_GOOGLETEST_SOURCE} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
    hocket_dependency(gtest gtest_main gmock gmock_main)
  else()
    find_package(GTest REQUIRED)
  endif()
  include(GoogleTest)
endif()
if(HOCKET_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
