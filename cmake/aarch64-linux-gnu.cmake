# 64-bit Arm on another machine, with the cross compiler and the emulator of Debian and Ubuntu (g++-aarch64-linux-gnu,
# qemu-user-static). Programs are static: the other architecture's libraries need not be installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
find_program(HOCKET_EMULATOR NAMES qemu-aarch64-static qemu-aarch64)
set(CMAKE_CROSSCOMPILING_EMULATOR ${HOCKET_EMULATOR})  # $QEMU_CPU says which CPU
