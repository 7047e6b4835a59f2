// The commands of the program. Each gets what the person typed, prints its result on standard
// output and everything else on standard error, and returns the exit status or why it failed.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/status.h"

namespace bascule {

struct Command {
  std::string name;
  std::string usage;     // "bascule plan [MODEL] [options]"
  std::string summary;   // one line, for the list of commands
  std::string text;      // what it does, for its own help
  std::string examples;  // lines of "  command   # why"
  Result<int> (*run)(const CommandLine&);
};

std::span<const Command> commands();

Result<int> cmd_run(const CommandLine& line);
Result<int> cmd_serve(const CommandLine& line);
Result<int> cmd_plan(const CommandLine& line);
Result<int> cmd_inspect(const CommandLine& line);
Result<int> cmd_config(const CommandLine& line);
Result<int> cmd_completion(const CommandLine& line);

// Help of one command, or of the program with its list of commands.
std::string help_text(const Command& command);
std::string program_help();

// The script that makes `shell` (bash, zsh or fish) complete commands and options.
Result<std::string> completion_script(const std::string& shell);

// Parses, runs and reports: the whole program but for argv and environ. Returns the exit status:
// 0, 1 for what failed, 2 for a command line that was not understood, 130 after Ctrl-C.
int run_program(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment);

}  // namespace bascule
