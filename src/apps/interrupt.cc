#include "apps/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace bascule {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // so that the handler may touch it
struct sigaction before, before_term;

void on_interrupt(int) {
  if (flag.exchange(true)) _exit(130);
}

}  // namespace

Interrupt::Interrupt(InterruptBy by) : by_(by) {
  flag = false;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a waiting read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
  if (by_ == InterruptBy::kCtrlCOrTerm) sigaction(SIGTERM, &action, &before_term);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before, nullptr);
  if (by_ == InterruptBy::kCtrlCOrTerm) sigaction(SIGTERM, &before_term, nullptr);
}

bool Interrupt::requested() { return flag; }
void Interrupt::forget() { flag = false; }

}  // namespace bascule
