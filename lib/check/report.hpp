#pragma once
// Findings as they are made. Internal.
//
//   reporter.add({.rule = "race", .places = {a, b}, .message = ..., .rests_on = {"X3"}});
//
// A finding stands where the last of its places does. At most CheckOptions::most of a rule are kept, the rest is counted.
#include "model.hpp"

#include <initializer_list>
#include <map>
#include <optional>
#include <set>

namespace sdma {
inline namespace v0 {
namespace check_detail {

/// Where something happens: a position of an agent.
struct At {
  std::uint32_t agent{}, position{};
};

struct Found {
  std::string_view rule{};
  std::vector<At> places{};
  std::string message{}, hint{}, overlap{};
  std::vector<std::string> notes{};  ///< a word about each place: "writes gpu1.buf[0..+4K]"
  std::vector<std::string> more{};   ///< lines behind the places
  std::vector<std::string_view> rests_on{};
  std::string where{};                 ///< where nothing of the schedule is meant by a place
  std::optional<Severity> severity{};  ///< else that of the rule
};

class Reporter {
 public:
  explicit Reporter(const Model& m) : m_(m) {}

  /// Is there room for one more of this rule? Counts it. Whoever has much to say asks first.
  bool room(const std::string& rule);
  void add(Found f) {
    if (room(std::string(f.rule))) keep(std::move(f));
  }
  void keep(Found);
  /// Is there an error with a place of this agent?
  bool blamed(std::uint32_t agent) const noexcept { return blamed_.contains(agent); }
  CheckReport finish();

  /// "gpu0.push", "host main", "kernel gemm".
  std::string agent(std::uint32_t) const;
  /// "line 7 [i=0]", or "packet 3 of gpu0.push" where there are no lines.
  std::string place(At) const;
  /// "gpu1.buf[2K..+4K]".
  std::string range(std::uint64_t begin, std::uint64_t end) const;
  std::string word(const Word&) const;
  std::string text(At) const;
  bool has_lines() const noexcept { return m_.options.map != nullptr; }

 private:
  SourceMap::Spot spot(At) const;
  std::string where(At) const;
  /// "gpu0.push+0x1c", "kernel gemm step 2".
  std::string unlined(At) const;
  std::string label(At) const;

  const Model& m_;
  std::set<std::uint32_t> blamed_;
  std::vector<CheckFinding> found_;
  std::map<std::string, std::size_t> counts_;
};

const OrderingRule* ordering_rule(std::string_view id) noexcept;

// What is looked for, a file each.
void find_races(Model&, Reporter&);
void find_stuck(const Model&, Reporter&);
void find_bad_waits(const Model&, Reporter&);
void find_unawaited(const Model&, Reporter&);
void find_in_packets(const Model&, Reporter&);
void find_in_kernels(const Model&, Reporter&);

}  // namespace check_detail
}  // namespace v0
}  // namespace sdma
