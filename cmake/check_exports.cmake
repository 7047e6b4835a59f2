# cmake -DHEADER=... -DLIBRARY=... -DNM=... -P check_exports.cmake
# Fails unless the library defines exactly the bascule_ functions that its hand-kept header declares.
file(READ ${HEADER} header)
string(REGEX REPLACE "//[^\n]*" "" header "${header}")
string(REGEX MATCHALL "bascule_[a-z0-9_]+\\(" declared "${header}")
list(TRANSFORM declared REPLACE "\\(" "")

execute_process(COMMAND ${NM} --defined-only --extern-only ${LIBRARY}
  OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T bascule_[a-z0-9_]+" defined "${symbols}")
list(TRANSFORM defined REPLACE " T " "")

list(SORT declared)
list(SORT defined)
if(NOT declared STREQUAL defined OR NOT declared)
  message(FATAL_ERROR "declared: ${declared}\ndefined:  ${defined}")
endif()
