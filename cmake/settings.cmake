# What every target is built with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # no NDEBUG: BASCULE_CHECK stays on
set(CMAKE_C_FLAGS_RELEASE "-O2")

find_program(BASCULE_CCACHE ccache)
if(BASCULE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BASCULE_CCACHE})
endif()
find_program(BASCULE_MOLD mold)
if(BASCULE_MOLD AND NOT BASCULE_FUZZERS)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)

add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers)
# A product and a sum stay two roundings in plain loops, whatever the compiler or processor: the
# reference rows must give the same bits everywhere. Fast rows ask for fused sums by intrinsics.
add_compile_options(-ffp-contract=off)
add_compile_definitions(BASCULE_VERSION="${PROJECT_VERSION}")

if(BASCULE_SANITIZE)
  add_compile_options(-O1)  # instrumented code takes g++ three times as long at -O2
  # Instrumentation makes g++ see faults where there are none; the plain presets refuse warnings.
  add_compile_options(-Wno-error)
  add_compile_options(-fsanitize=${BASCULE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${BASCULE_SANITIZE})
endif()
if(BASCULE_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage of the layers, which guides the fuzzer
endif()
