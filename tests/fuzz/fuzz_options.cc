// A configuration file from anywhere, then its values as the commands read them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/options.h"

using namespace bascule;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Options options;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!options.set_file_text(text, "x.toml").ok()) return 0;
  for (const OptionRow& row : option_rows()) {
    if (!options.has(row.name)) continue;
    if (row.kind == OptionKind::kFlag) (void)options.flag(row.name);
    if (row.kind == OptionKind::kInteger) (void)options.integer(row.name);
    if (row.kind == OptionKind::kNumber) (void)options.number(row.name);
    if (row.kind == OptionKind::kBytes) (void)options.bytes(row.name);
    if (row.kind == OptionKind::kText) (void)parse_ids(options.text(row.name));
  }
  return 0;
}
