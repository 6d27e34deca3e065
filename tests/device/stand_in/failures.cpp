// SPDX-License-Identifier: MIT
#include "failures.hpp"

#include "settings.hpp"

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace stand_in {
namespace {

struct Failure {
  unsigned long call{};  ///< 1: the first
  Status code{};
  bool later{};
};
struct Calls {
  unsigned long made{};
  std::vector<Failure> failures{};
};

/// "cuMemcpyAsync:3:+700".
void parse(std::map<std::string, Calls, std::less<>>& to, const std::string& text) {
  const auto first = text.find(':'), second = text.find(':', first + 1);
  if (first == text.npos || second == text.npos) return;
  const auto code = text.substr(second + 1);
  to[text.substr(0, first)].failures.push_back({.call = std::strtoul(text.c_str() + first + 1, nullptr, 10),
                                                .code = std::atoi(code.c_str()),
                                                .later = code.starts_with('+')});
}

std::map<std::string, Calls, std::less<>>& functions() {
  static auto* const all = [] {
    auto* m = new std::map<std::string, Calls, std::less<>>;
    const auto& text = settings().failures;
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find(',', at), text.size());
      parse(*m, text.substr(at, end - at));
      at = end + 1;
    }
    return m;
  }();
  return *all;
}

thread_local Status later = kSuccess;

}  // namespace

Status count_call(const char* function) {
  static auto* const mutex = new std::mutex;
  later = kSuccess;
  auto& all = functions();
  const auto it = all.find(std::string_view(function));  // the map itself never changes
  if (it == all.end()) return kSuccess;
  const std::lock_guard lock(*mutex);
  ++it->second.made;
  for (const auto& f : it->second.failures) {
    if (f.call != it->second.made) continue;
    if (!f.later) return f.code;
    later = f.code;
  }
  return kSuccess;
}

Status take_later_failure() {
  const auto code = later;
  later = kSuccess;
  return code;
}

}  // namespace stand_in
