#include "serve/fields.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace bascule {
namespace {

TEST(Fields, StandOnceInTheirTable) {
  for (const ApiDialect& dialect : api_dialects()) {
    std::set<std::string_view> names;
    for (const Field& field : dialect.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << dialect.path << " " << field.name;
      EXPECT_TRUE(field.use != FieldUse::kRefused || !field.note.empty()) << field.name;
      EXPECT_TRUE(field.harmless.empty() || parse_json(field.harmless, "").ok()) << field.name;
    }
  }
}

TEST(Fields, TheDocumentIsWrittenFromTheTable) {
  std::ifstream file(std::string(BASCULE_TEST_DATA) + "/../docs/server-api.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string tables = text.str().substr(text.str().find("## Fields"));
  EXPECT_EQ(tables, "## Fields\n" + fields_markdown())
      << "run build/cpu/tools/write_server_api docs/server-api.md";
}

}  // namespace
}  // namespace bascule
