# Writes OUTPUT, a header with git's name of the commit that SOURCE is at. Run at each build; the file
# changes only when the name does.
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --tags
  OUTPUT_VARIABLE source_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(source_version "not from a git checkout")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#pragma once

namespace bascule {
inline constexpr char kSourceVersion[] = \"@source_version@\";
}  // namespace bascule
")
