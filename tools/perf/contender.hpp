// SPDX-License-Identifier: MIT
#pragma once
// One way to perform a collective at one size, ready for rounds. Ours and other libraries' are timed by the same code.
//
//   auto c = prepare_file(file, options, device, settings);     // or one of sweep.cpp, or a rival's: companions.hpp
//   c->fill(seed);
//   c->arm(deadline);                                  // untimed: publishes or enqueues what waits for the start
//   begin = now();  c->start(deadline);  c->wait(deadline);  end = now();
//   wrong += c->check()->wrong;
//
// Between `wait` and the next `arm`, nothing of a contender waits on a GPU. That matters on the CUDA device: while
// a stream of the process waits, many calls of the driver block, and others' streams may be held up. So contenders
// can take turns.
//
// One thread at a time uses a contender. Errors: Diagnostics; afterwards, destroy it.
#include "collectives/run.hpp"
#include "settings.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace collectives::perf {

class Contender {
 public:
  virtual ~Contender() = default;
  virtual sdma::Result<void, sdma::Diagnostic> fill(std::uint64_t seed) = 0;
  virtual sdma::Result<void, sdma::Diagnostic> arm(sdma::Deadline) { return {}; }
  virtual sdma::Result<void, sdma::Diagnostic> start(sdma::Deadline) { return {}; }
  virtual sdma::Result<void, sdma::Diagnostic> wait(sdma::Deadline) = 0;
  /// Does `start` of this rank begin something? Its time counts only then.
  virtual bool starts() const { return true; }
  /// The time of the last round, if the contender measures it: that from before `start` until after `wait` otherwise.
  virtual std::optional<double> microseconds() const { return {}; }
  virtual sdma::Result<Check, sdma::Diagnostic> check() = 0;
  virtual std::vector<std::string> notes() const = 0;

 protected:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
};

/// Prepares a rival for the size of these options. Called while nothing waits on a GPU.
using PrepareRival =
    std::function<sdma::Result<std::unique_ptr<Contender>, sdma::Diagnostic>(const Way&, const Options&)>;

}  // namespace collectives::perf
