// SPDX-License-Identifier: MIT
#include "mends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// How many changed texts are checked for one report, how many packets they have together, and for how many findings.
constexpr std::size_t kMostChecks = 400, kMostPackets = 100'000, kMostFindings = 3;
/// How many findings a set of edits removes, one after the other, and how many texts each step continues with.
constexpr std::size_t kMostSteps = 5, kMostKept = 3;

/// A text that is left after some changes.
struct Tried {
  SourceLines text;
  CheckReport report;
  std::size_t left() const noexcept { return report.errors() + report.warnings(); }
  /// How often an engine is said to serve several directions, or one for which another is recommended.
  std::ptrdiff_t crowded() const noexcept {
    return std::count_if(report.findings.begin(), report.findings.end(), [](const CheckFinding& f) {
      return f.diagnostic.rule == "shared-engine" || f.diagnostic.rule == "engine-choice";
    });
  }
  bool better(const Tried& other) const noexcept {
    if (report.errors() != other.report.errors()) return report.errors() < other.report.errors();
    if (left() != other.left()) return left() < other.left();
    if (report.unread.size() != other.report.unread.size()) return report.unread.size() < other.report.unread.size();
    if (crowded() != other.crowded()) return crowded() < other.crowded();
    return text.edits().size() < other.text.edits().size();
  }
};

/// Is the same thing reported about the same lines?
bool reported(const SourceLines& before, const CheckFinding& f, const Tried& now) {
  const auto lines = [](const SourceLines& text, const CheckFinding& x) {
    std::vector<LineId> ids;
    for (const auto& l : x.locations) ids.push_back(text.id(l.line));
    return ids;
  };
  return std::any_of(now.report.findings.begin(), now.report.findings.end(), [&](const CheckFinding& g) {
    return g.diagnostic.rule == f.diagnostic.rule && lines(now.text, g) == lines(before, f);
  });
}

/// Bytes that are wrong in every execution: what leads there fixes nothing.
bool has_wrong_result(const CheckReport& r) {
  return std::any_of(r.findings.begin(), r.findings.end(),
                     [](const CheckFinding& f) { return f.diagnostic.rule == "wrong-result"; });
}

/// Is there a copy that nothing reads after the changes?
bool loses(const Tried& t) { return !t.report.unread.empty(); }
/// Is the finding about the order of a read and a write? Then a change that leaves a message unread was not meant.
bool about_reading(const CheckFinding& f) {
  return f.diagnostic.rule == "race" && f.diagnostic.message.find("either may be last") == std::string::npos;
}

std::string in_words(const std::vector<CheckEdit>& edits, std::size_t left) {
  std::string out;
  for (const auto& e : edits) {
    out += out.empty() ? "" : "; ";
    using Kind = CheckEdit::Kind;
    if (e.kind == Kind::insert) out += fmt::format("before line {} insert: {}", e.line, e.text);
    if (e.kind == Kind::replace) out += fmt::format("replace line {} by: {}", e.line, e.text);
    if (e.kind == Kind::remove) out += fmt::format("remove line {}", e.line);
  }
  const auto with = edits.size() > 1                           ? "these changes"
                    : edits[0].kind == CheckEdit::Kind::insert ? "this line"
                                                               : "this change";
  if (left == 0) return out + fmt::format("; with {} the schedule is proved", with);
  return out + fmt::format("; {} remove{} this finding, {} remain{}", with, edits.size() > 1 ? "" : "s", left,
                           left == 1 ? "s" : "");
}

class Mender {
 public:
  Mender(std::string_view source, const Recheck& recheck) : first_{SourceLines(source), {}}, recheck_(recheck) {}

  void run(CheckReport& report) {
    first_.report = report;
    std::vector<std::pair<CheckFinding*, bool>> tried;  // and whether its changes leave a message unread
    std::optional<Tried> proved;
    for (auto& f : report.findings) {
      if (f.diagnostic.severity == Severity::note || tried.size() == kMostFindings) continue;
      bool losing = false;
      // What follows from the first finding is often gone with it, so it alone is followed to a proof.
      if (const auto best = follow(f, tried.empty() ? kMostSteps : 1); best && !(loses(*best) && about_reading(f))) {
        take(f, *best);
        if (best->left() == 0 && (!proved || best->better(*proved))) proved = best;
        losing = loses(*best);
      }
      tried.emplace_back(&f, losing);
    }
    // A proof has none of the findings.
    for (const auto& [f, losing] : tried)
      if (proved && (f->remaining != 0 || (losing && !loses(*proved)))) take(*f, *proved);
  }

 private:
  static void take(CheckFinding& f, const Tried& t) {
    f.edits = t.text.edits();
    f.remaining = t.left();
    // What scope=agent stands for in a kernel's code is not in the text.
    const auto code = f.diagnostic.rule == "kernel-scope" ? " (" + f.diagnostic.hint + ")" : std::string();
    f.diagnostic.hint = in_words(f.edits, t.left()) + code;
    if (loses(t))
      f.diagnostic.hint += "; nothing then reads what this copies: " + t.text.text(t.text.id(t.report.unread[0]));
  }

  /// The best text without this finding; nullopt if none was found.
  std::optional<Tried> follow(const CheckFinding& f, std::size_t steps) {
    std::optional<Tried> best;
    std::vector<Tried> from;
    std::set<std::string> seen;
    const auto examine = [&](const Tried& before, const CheckFinding& g) {
      std::vector<Tried> found;
      for (auto& text : changes_for(before.text, before.report, g)) {
        if (!seen.insert(text.source()).second) continue;
        auto t = attempt(std::move(text));
        if (!t || reported(before.text, g, *t) || reported(first_.text, f, *t)) continue;
        if ((!best || t->better(*best)) && !brings_errors(*t)) best = *t;
        if (t->left() > 0) found.push_back(std::move(*t));
      }
      if (best && best->left() == 0 && !loses(*best)) return true;
      std::stable_sort(found.begin(), found.end(), [](const Tried& a, const Tried& b) { return a.better(b); });
      if (found.size() > kMostKept) found.erase(found.begin() + kMostKept, found.end());
      from.insert(from.end(), found.begin(), found.end());
      return false;
    };
    if (examine(first_, f)) return best;
    for (std::size_t step = 1; step < steps && !from.empty(); ++step) {
      std::stable_sort(from.begin(), from.end(), [](const Tried& a, const Tried& b) { return a.better(b); });
      if (from.size() > kMostKept) from.erase(from.begin() + kMostKept, from.end());
      for (const auto& before : std::exchange(from, {}))
        if (examine(before, before.report.findings.front())) return best;
    }
    return best;
  }

  /// Is there an error of a rule that no error of the first report has? A wait for what never comes, for one.
  bool brings_errors(const Tried& t) const {
    const auto& first = first_.report.findings;
    return std::any_of(t.report.findings.begin(), t.report.findings.end(), [&](const CheckFinding& g) {
      const auto& d = g.diagnostic;
      return d.severity == Severity::error && std::none_of(first.begin(), first.end(), [&](const CheckFinding& f) {
               return f.diagnostic.rule == d.rule;
             });
    });
  }

  std::optional<Tried> attempt(SourceLines text) {
    const auto [known, added] = known_.try_emplace(text.source());
    auto& r = known->second;
    if (added && known_.size() <= kMostChecks && packets_ <= kMostPackets) {
      r = recheck_(known->first);
      if (r) packets_ += r->packets;
    }
    if (!r || (has_wrong_result(*r) && !has_wrong_result(first_.report))) return {};
    return Tried{std::move(text), *r};
  }

  Tried first_;
  const Recheck& recheck_;
  std::map<std::string, std::optional<CheckReport>> known_;  ///< by text
  std::size_t packets_ = 0;
};

}  // namespace

void mend(std::string_view source, CheckReport& report, const Recheck& recheck) { Mender{source, recheck}.run(report); }

}}}  // namespace sdma::v0_3::check_detail
