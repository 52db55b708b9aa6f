# Libraries of the program: distribution packages, and three CMake targets built from two pinned source archives.
#
#   hocket_httplib  HTTP server and client          (llama.cpp tree, vendor/cpp-httplib)
#   hocket_jinja    chat-template language          (llama.cpp tree, common/jinja and what it needs)
#   hocket_xgrammar constrained decoding            (xgrammar tree)

hocket_fetched_source(HOCKET_XGRAMMAR_SOURCE xgrammar include/xgrammar/xgrammar.h)

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
