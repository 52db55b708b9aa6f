# Libraries: distribution packages, and three CMake targets built from two pinned source archives.
#
#   ggml            tensors and CPU kernels         (llama.cpp tree, ggml/)
#   hocket_httplib  HTTP server and client          (llama.cpp tree, vendor/cpp-httplib)
#   hocket_jinja    chat-template language          (llama.cpp tree, common/jinja and what it needs)
#   hocket_xgrammar constrained decoding            (xgrammar tree)
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
hocket_fetched_source(HOCKET_XGRAMMAR_SOURCE xgrammar include/xgrammar/xgrammar.h)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(LIBEDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(SNDFILE REQUIRED IMPORTED_TARGET sndfile)
pkg_check_modules(SOXR REQUIRED IMPORTED_TARGET soxr)
# LAME has no pkg-config file.
find_path(LAME_INCLUDE_DIR lame/lame.h REQUIRED)
find_library(LAME_LIBRARY mp3lame REQUIRED)
add_library(hocket_lame INTERFACE)
target_include_directories(hocket_lame SYSTEM INTERFACE ${LAME_INCLUDE_DIR})
target_link_libraries(hocket_lame INTERFACE ${LAME_LIBRARY})
find_package(OpenSSL REQUIRED)
find_package(SQLiteCpp REQUIRED)

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
  endif()
endif()

# ---- cpp-httplib
add_library(hocket_httplib STATIC EXCLUDE_FROM_ALL ${HOCKET_LLAMA_SOURCE}/vendor/cpp-httplib/httplib.cpp)
target_include_directories(hocket_httplib SYSTEM PUBLIC ${HOCKET_LLAMA_SOURCE}/vendor/cpp-httplib)
hocket_dependency(hocket_httplib)
target_compile_definitions(hocket_httplib PUBLIC
  CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_TCP_NODELAY=1 CPPHTTPLIB_LISTEN_BACKLOG=512
  CPPHTTPLIB_REQUEST_URI_MAX_LENGTH=8192 CPPHTTPLIB_HEADER_MAX_LENGTH=8192)
target_link_libraries(hocket_httplib PUBLIC Threads::Threads OpenSSL::SSL OpenSSL::Crypto)

# ---- Jinja
file(GLOB jinja_sources ${HOCKET_LLAMA_SOURCE}/common/jinja/*.cpp)
add_library(hocket_jinja STATIC EXCLUDE_FROM_ALL ${jinja_sources} ${HOCKET_LLAMA_SOURCE}/common/json.cpp
                                                 ${HOCKET_LLAMA_SOURCE}/common/unicode.cpp)
target_include_directories(hocket_jinja SYSTEM PUBLIC ${HOCKET_LLAMA_SOURCE}/common
                           PRIVATE ${HOCKET_LLAMA_SOURCE}/vendor)
hocket_dependency(hocket_jinja)
target_compile_definitions(hocket_jinja PUBLIC NDEBUG)  # its asserts look at templates, which are input
target_link_libraries(hocket_jinja PRIVATE ggml)

# ---- XGrammar
file(GLOB_RECURSE xgrammar_sources ${HOCKET_XGRAMMAR_SOURCE}/cpp/*.cc)
list(FILTER xgrammar_sources EXCLUDE REGEX "/tvm_ffi/")
add_library(hocket_xgrammar STATIC EXCLUDE_FROM_ALL ${xgrammar_sources})
target_include_directories(hocket_xgrammar SYSTEM PUBLIC
  ${HOCKET_XGRAMMAR_SOURCE}/include ${HOCKET_XGRAMMAR_SOURCE}/3rdparty/dlpack/include
  ${HOCKET_XGRAMMAR_SOURCE}/3rdparty/picojson)
target_compile_features(hocket_xgrammar PUBLIC cxx_std_17)
hocket_dependency(hocket_xgrammar)
target_link_libraries(hocket_xgrammar PUBLIC Threads::Threads)

# ---- tests and benches
if(HOCKET_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(HOCKET_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
