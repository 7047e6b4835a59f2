#include <unistd.h>

#include "apps/commands.h"

int main(int argc, char** argv) {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return bascule::run_program({argv + 1, argv + argc}, environment);
}
