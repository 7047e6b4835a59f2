// Ctrl-C: the first asks whatever runs to stop, the second ends the process at once.
#pragma once

namespace bascule {

// While one lives, SIGINT sets the flag instead of ending the process. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static void forget();  // for the next turn of a conversation
};

}  // namespace bascule
