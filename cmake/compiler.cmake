# Compiler launcher, warnings and sanitizers, for every target of the build.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

if(HOCKET_SANITIZE)
  # Dependencies leave `undefined` out (dependencies.cmake). A report needs no more than -O1 and line tables, and they compile sooner than -O2 -g.
  add_compile_options(-fsanitize=${HOCKET_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${HOCKET_SANITIZE})
endif()

# Warnings for our own code only.
add_library(hocket_warnings INTERFACE)
target_compile_options(hocket_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                                 -Woverloaded-virtual -Wno-unused-parameter)
