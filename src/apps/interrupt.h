// Ctrl-C, and SIGTERM for a server: the first asks whatever runs to stop, the second ends the
// process at once.
#pragma once

namespace bascule {

enum class InterruptBy { kCtrlC, kCtrlCOrTerm };

// While one lives, the signal sets the flag instead of ending the process. One at a time.
class Interrupt {
 public:
  explicit Interrupt(InterruptBy by = InterruptBy::kCtrlC);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static void forget();  // for the next turn of a conversation

 private:
  InterruptBy by_;
};

}  // namespace bascule
