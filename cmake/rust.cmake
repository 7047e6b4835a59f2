# bascule_text_rust: the crate in rust/, built by cargo beside the C++ compile. Any cargo from 1.88 on
# does: rustup's, or Debian's (apt install cargo-web rustc-web).
option(BASCULE_OFFLINE "Let cargo use only crates that are already on this machine" OFF)

find_program(BASCULE_CARGO cargo)
if(NOT BASCULE_CARGO)
  message(FATAL_ERROR "cargo was not found; on Debian 12: apt install cargo-web rustc-web")
endif()

# The library is the same in every preset, sanitizers included, so all presets under build/ share one
# cargo folder; cargo locks it while it works. Elsewhere it stays inside the build folder.
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" NORMALIZE is_inside)
if(DEFINED ENV{CARGO_TARGET_DIR})
  set(cargo_folder $ENV{CARGO_TARGET_DIR})
elseif(is_inside)
  set(cargo_folder ${PROJECT_SOURCE_DIR}/build/cargo)
else()
  set(cargo_folder ${PROJECT_BINARY_DIR}/cargo)
endif()

set(cargo_options --release --locked --quiet)
set(cargo_result ${cargo_folder}/release)
set(cargo_environment)
if(BASCULE_OFFLINE)
  list(APPEND cargo_options --offline)
endif()
if(BASCULE_FUZZERS)
  # libFuzzer looks for inputs that reach new code; this makes it see the Rust code too. Naming a
  # target keeps the flags from what cargo builds for its own use.
  execute_process(COMMAND ${BASCULE_CARGO} -vV OUTPUT_VARIABLE about COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "host: ([^\n]+)" host "${about}")
  set(host ${CMAKE_MATCH_1})
  list(APPEND cargo_options --target ${host})
  set(cargo_result ${cargo_folder}/${host}/release)
  set(passes sanitizer-coverage-level=3 sanitizer-coverage-inline-8bit-counters
    sanitizer-coverage-pc-table sanitizer-coverage-trace-compares)
  list(TRANSFORM passes PREPEND -Cllvm-args=-)
  list(JOIN passes " " flags)
  set(cargo_environment "RUSTFLAGS=-Cpasses=sancov-module ${flags}" CARGO_PROFILE_RELEASE_LTO=off)
endif()

set(crate ${PROJECT_SOURCE_DIR}/rust)
file(GLOB crate_sources CONFIGURE_DEPENDS ${crate}/src/*.rs)
# A copy of its own for this build folder: cargo's may be replaced by another one's while we link.
set(crate_library ${PROJECT_BINARY_DIR}/rust/libbascule_text_rust.a)
add_custom_command(
  OUTPUT ${crate_library}
  COMMAND ${CMAKE_COMMAND} -E env ${cargo_environment} ${BASCULE_CARGO} build ${cargo_options}
          --manifest-path ${crate}/Cargo.toml --target-dir ${cargo_folder}
  COMMAND ${CMAKE_COMMAND} -E copy ${cargo_result}/libbascule_text_rust.a ${crate_library}
  DEPENDS ${crate_sources} ${crate}/Cargo.toml ${crate}/Cargo.lock
  COMMENT "Building the Rust library (cargo)"
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(bascule_text_cargo DEPENDS ${crate_library})

add_library(bascule_text_rust STATIC IMPORTED GLOBAL)
add_dependencies(bascule_text_rust bascule_text_cargo)
set_target_properties(bascule_text_rust PROPERTIES
  IMPORTED_LOCATION ${crate_library}
  INTERFACE_INCLUDE_DIRECTORIES ${crate})
target_link_libraries(bascule_text_rust INTERFACE gcc_s m dl Threads::Threads)
