// SPDX-License-Identifier: MIT
#pragma once
// A thread that starts during the lifetime of this object never runs the program's signal handlers.
//
//   const SignalsBlocked blocked;
//   thread = std::thread(...);
#include <pthread.h>
#include <signal.h>

namespace sdma { inline namespace v0_3 { namespace detail {

class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}}}  // namespace sdma::v0_3::detail
