# bascule_layer(NAME [DEPENDS layer...] [LIBRARIES target...])
#   One static library bascule_NAME of every .cc under the current folder, and one test program
#   NAME_test of every *_test.cc beside them. A layer may include only the layers it DEPENDS on;
#   tools/check_layers.py reads the same order.
function(bascule_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benchmarks ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benchmarks INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")

  list(TRANSFORM arg_DEPENDS PREPEND bascule_)
  add_library(bascule_${name} STATIC ${sources})
  target_include_directories(bascule_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(bascule_${name} PUBLIC ${arg_DEPENDS} ${arg_LIBRARIES})

  if(BASCULE_TESTS AND tests)
    find_package(GTest REQUIRED)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE bascule_${name} GTest::gmock GTest::gtest_main)
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)  # support/*.h
    target_compile_definitions(${name}_test PRIVATE
      BASCULE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
    include(GoogleTest)
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
  if(BASCULE_BENCHMARKS AND benchmarks)
    find_package(benchmark REQUIRED)
    add_executable(${name}_bench ${benchmarks})
    target_link_libraries(${name}_bench PRIVATE bascule_${name} benchmark::benchmark_main)
  endif()
endfunction()
