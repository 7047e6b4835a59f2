// Writes the tables of docs/server-api.md from the code's own: all from "## Fields" on is replaced.
//
//   write_server_api docs/server-api.md
#include <cstdio>
#include <fstream>
#include <sstream>

#include "serve/fields.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("write_server_api FILE: FILE's tables are written anew\n", stderr);
    return 2;
  }
  std::ostringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  const std::string head = text.str().substr(0, text.str().find("## Fields"));
  std::ofstream(argv[1]) << head << "## Fields\n" << bascule::fields_markdown();
  return 0;
}
