// SPDX-License-Identifier: MIT
// Serves requests as the server of examples/serving does, in the measured times of its steps.
#include "sdma/simulate/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr double kMsPerSecond = 1e3;
constexpr std::uint64_t kMostTokens = 1'000'000'000;  ///< of a request, before, in and after its prompt

class ServingLoop {
 public:
  ServingLoop(const std::vector<ServingRequest>& all, const StepTimes& steps, const ServingOptions& o)
      : all_(all), steps_(steps), o_(o), free_(o.blocks) {}

  Result<Serving, Diagnostic> run() {
    if (auto wrong = cannot()) return *std::move(wrong);
    out_.requests.resize(all_.size());
    while (next_ < all_.size() || !running_.empty()) {
      const auto head = admit();
      if (wrong_) return *std::move(wrong_);
      release();
      if (running_.empty()) now_ = next_ < all_.size() ? std::max(now_, all_[next_].arrival) : now_;
      else decode(head);
      if (wrong_) return *std::move(wrong_);
    }
    std::uint64_t tokens = 0;
    for (const auto& r : all_) tokens += r.tokens;
    out_.seconds = now_;
    out_.tokens_per_second = static_cast<double>(tokens) / now_;
    return std::move(out_);
  }

 private:
  struct Running {
    std::size_t request{};
    std::uint64_t tokens{};    ///< generated
    std::uint64_t position{};  ///< tokens in the KV cache
  };
  /// Why the head of the queue waits. `no_one`: it has not arrived, or there is none.
  enum class Head { no_one, batch, blocks };

  std::optional<Diagnostic> cannot() const {
    if (all_.empty()) return Diagnostic{.message = "there are no requests"};
    if (o_.batch == 0 || o_.block_tokens == 0)
      return Diagnostic{.message = "a batch and a block need a size of 1 at least"};
    if (!steps_.admit.contains(o_.way)) {
      std::vector<std::string> ways;
      for (const auto& [way, grid] : steps_.admit) ways.push_back(way);
      return Diagnostic{.message = fmt::format("the table has no way '{}'", o_.way),
                        .hint = fmt::format("it has {}", fmt::join(ways, ", "))};
    }
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto& r = all_[i];
      if (r.tokens == 0 || r.prefix + r.prompt == 0)
        return Diagnostic{.message = fmt::format("request {} has no tokens, or wants none", i)};
      if (std::max({r.prefix, r.prompt, r.tokens}) > kMostTokens)
        return Diagnostic{.message = fmt::format("request {} has more than {} tokens", i, kMostTokens)};
      if (blocks_of(r) > o_.blocks)
        return Diagnostic{
            .message = fmt::format("request {} needs {} blocks, and the GPU has {}", i, blocks_of(r), o_.blocks),
            .hint = "give the GPU more blocks"};
    }
    return {};
  }

  std::uint64_t blocks_of(const ServingRequest& r) const {
    return (r.prefix + r.prompt + r.tokens + o_.block_tokens - 1) / o_.block_tokens;
  }

  /// A step begins, and ends: requests that have arrived by then wait for what the head of the queue waits for.
  void pass(double ms, Head head, std::size_t first_waiting) {
    const auto end = now_ + ms / kMsPerSecond;
    for (auto i = first_waiting; i < all_.size() && all_[i].arrival < end; ++i) {
      auto& r = out_.requests[i];
      const auto waited = end - std::max(now_, all_[i].arrival);
      (head == Head::blocks  ? r.waited_for_blocks
       : head == Head::batch ? r.waited_for_batch
                             : r.waited_for_others) += waited;
    }
    now_ = end;
  }

  /// Requests that fit, one after another.
  Head admit() {
    while (next_ < all_.size() && all_[next_].arrival <= now_) {
      if (running_.size() >= o_.batch) return Head::batch;
      const auto& r = all_[next_];
      if (blocks_of(r) > free_) return Head::blocks;
      const auto cached = o_.way == "none" ? 0 : r.prefix / o_.block_tokens * o_.block_tokens;
      const auto fresh = r.prefix + r.prompt - cached;
      const auto t = StepTimes::time(steps_.admit.at(o_.way), cached, fresh);
      if (refused(*t, fmt::format("an admission ({}) of {} fetched and {} prefilled tokens", o_.way, cached, fresh)))
        return Head::no_one;
      out_.admissions_beyond += t->beyond ? 1 : 0;
      free_ -= blocks_of(r);
      out_.requests[next_].admitted = now_;
      pass(t->ms, Head::no_one, next_ + 1);
      out_.requests[next_].first = now_;
      running_.push_back({next_++, 1, r.prefix + r.prompt});
    }
    return Head::no_one;
  }

  void release() {
    std::erase_if(running_, [this](const Running& r) {
      const auto& asked = all_[r.request];
      if (r.tokens < asked.tokens) return false;
      free_ += blocks_of(asked);
      out_.requests[r.request].last = now_;
      return true;
    });
  }

  /// A token for each. Tables of blocks are as long as the longest one, so that one decides.
  void decode(Head head) {
    std::uint64_t longest = 0;
    for (const auto& r : running_) longest = std::max(longest, r.position);
    const auto t = StepTimes::time(steps_.decode, longest, running_.size());
    if (!t) {
      wrong_ = Diagnostic{.message = "the table has no decode step"};
      return;
    }
    if (refused(*t, fmt::format("a decode step of {} requests of {} tokens", running_.size(), longest))) return;
    out_.decodes_beyond += t->beyond ? 1 : 0;
    ++out_.decode_steps;
    pass(t->ms, head, next_);
    for (auto& r : running_) ++r.tokens, ++r.position;
  }

  bool refused(const StepTimes::Time& t, const std::string& what) {
    if (!t.beyond || o_.nearest) return false;
    wrong_ = Diagnostic{.message = what + " is beyond the shapes that were measured",
                        .hint = "measure it, or take the time of the nearest shape (--nearest)"};
    return true;
  }

  const std::vector<ServingRequest>& all_;
  const StepTimes& steps_;
  const ServingOptions& o_;
  std::uint64_t free_;
  std::size_t next_ = 0;  ///< the head of the queue
  double now_ = 0;
  std::vector<Running> running_{};
  Serving out_{};
  std::optional<Diagnostic> wrong_{};
};

}  // namespace

std::vector<ServingRequest> poisson_arrivals(std::size_t count, double rate, std::uint64_t seed,
                                             const ServingRequest& each) {
  std::mt19937_64 random(seed);
  std::vector<ServingRequest> out(count, each);
  double at = 0;
  for (auto& r : out) {
    // std::exponential_distribution differs between standard libraries.
    constexpr unsigned kMantissa = 53;
    const auto uniform = std::ldexp(static_cast<double>(random() >> (64 - kMantissa)), -static_cast<int>(kMantissa));
    r.arrival = at += -std::log1p(-uniform) / rate;
  }
  return out;
}

Result<Serving, Diagnostic> serve_requests(const std::vector<ServingRequest>& all, const StepTimes& steps,
                                           const ServingOptions& options) {
  return ServingLoop(all, steps, options).run();
}

}}  // namespace sdma::v0_3
