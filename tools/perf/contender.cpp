// SPDX-License-Identifier: MIT
#include "contender.hpp"

#include "ranks.hpp"

namespace collectives::perf {

using namespace sdma;

namespace {

class Ours final : public Contender {
 public:
  explicit Ours(Run run) : run_(std::move(run)) {}

  Result<void, Diagnostic> fill(std::uint64_t seed) override {
    run_.fill(seed);
    return {};
  }
  /// Run::prepare has published the first round.
  Result<void, Diagnostic> arm(Deadline d) override {
    return run_.round() == 0 ? Result<void, Diagnostic>{} : run_.refill(d);
  }
  Result<void, Diagnostic> start(Deadline d) override { return run_.start(d); }
  Result<void, Diagnostic> wait(Deadline d) override { return run_.wait(d); }
  bool starts() const override { return run_.starts(); }
  Result<Check, Diagnostic> check() override { return run_.check(); }
  std::vector<std::string> notes() const override { return run_.plan().notes; }

 private:
  Run run_;
};

}  // namespace

Result<std::unique_ptr<Contender>, std::vector<Diagnostic>> prepare_ours(const Plan& p, Device& d, const Settings& s) {
  auto run = Run::prepare(p, d, bind_options(s));
  if (!run) return std::move(run.error());
  std::unique_ptr<Contender> ours = std::make_unique<Ours>(*std::move(run));
  if (p.options.prelaunch == Prelaunch::off) return ours;
  const auto deadline = Deadline::in(s.timeout);
  auto done = ours->start(deadline);
  if (done) done = ours->wait(deadline);
  if (!done) return std::vector<Diagnostic>{std::move(done.error())};
  return ours;
}

}  // namespace collectives::perf
