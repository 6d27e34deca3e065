// SPDX-License-Identifier: MIT
#include "coredump.hpp"

#include "line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::string_view kRing = "ring name:", kSize = "Ring size in dwords:", kBuffer = "IB #";

std::optional<std::uint64_t> dwords_as_bytes(std::string_view s) noexcept {
  const auto n = number_of(s);
  return n ? std::optional(*n * 4) : std::nullopt;
}

/// "0x40   0x5": numbers and nothing else.
bool is_row(std::string_view line) noexcept {
  const auto l = trimmed(line);
  return l.starts_with("0x") && l.find_first_not_of("0123456789abcdefxABCDEF \t") == l.npos;
}

}  // namespace

std::string_view value_after(std::string_view line, std::string_view key) noexcept {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  const auto rest = trimmed(line.substr(at + key.size()));
  return rest.substr(0, rest.find_first_of(" \t\r,"));
}

std::optional<std::uint64_t> number_of(std::string_view s) noexcept {
  const bool hex = s.starts_with("0x");
  if (hex) s.remove_prefix(2);
  std::uint64_t v;
  if (s.empty() || s.size() > 16 || s.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos ||
      !number_in(s, hex ? 16 : 10, v))
    return {};
  return v;
}

std::vector<CoredumpRing> coredump_rings(std::string_view text) {
  std::vector<CoredumpRing> all;
  bool rows = false, open = false;  // of the last ring
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    const auto begin = static_cast<std::size_t>(line.data() - text.data());
    if (const auto name = value_after(line, kRing); !name.empty()) {
      all.push_back({.name = std::string(name), .text = text.substr(begin + line.size(), 0), .line = n});
      open = true;
      rows = false;
    } else if (!open) {
      return true;
    } else if (is_row(line)) {
      auto& ring = all.back();
      if (!std::exchange(rows, true)) ring.text = text.substr(begin, 0), ring.line = n;
      ring.text = {ring.text.data(), static_cast<std::size_t>(line.data() + line.size() - ring.text.data())};
    } else if (rows) {
      open = false;
    } else {
      auto& ring = all.back();
      if (!ring.rptr) ring.rptr = dwords_as_bytes(value_after(line, "Rptr:"));
      if (!ring.wptr) ring.wptr = dwords_as_bytes(value_after(line, "Wptr:"));
      if (!ring.dwords) ring.dwords = number_of(value_after(line, kSize));
    }
    return true;
  });
  return all;
}

std::vector<CoredumpQueue> coredump_queues(std::string_view text) {
  constexpr std::string_view kEngine = "Instance:", kQueue = "regSDMA_RLC", kField = "_RB_";
  std::vector<CoredumpQueue> all;
  if (text.find(kQueue) == text.npos) return all;
  std::uint32_t engine = 0;
  bool sdma = false, known = false;  // the part of an engine; its number
  each_line(text, 1, [&](std::string_view line, std::size_t) {
    const auto l = trimmed(line);
    if (const auto ip = value_after(l, "IP: "); l.starts_with("IP: ")) {
      sdma = ip.starts_with("sdma");
      known = false;
    } else if (l.starts_with(kEngine)) {
      const auto n = number_of(value_after(l, kEngine));
      known = n && *n <= UINT32_MAX;
      engine = known ? static_cast<std::uint32_t>(*n) : 0;
    } else if (sdma && known && l.starts_with(kQueue)) {
      const auto name = l.substr(kQueue.size(), l.find_first_of(" \t") - kQueue.size());
      const auto field = name.find(kField);
      const auto slot = number_of(name.substr(0, field));
      const auto value = number_of(trimmed(l.substr(kQueue.size() + name.size())));
      if (!slot || field == name.npos || !value || *value > UINT32_MAX || *slot > UINT32_MAX) return true;
      if (all.empty() || all.back().engine != engine || all.back().slot != *slot)
        all.push_back({.engine = engine, .slot = static_cast<std::uint32_t>(*slot)});
      auto& q = all.back();
      const auto what = name.substr(field + kField.size());
      for (const auto& [of, to] :
           {std::pair("CNTL", &q.control), std::pair("RPTR", &q.rptr), std::pair("RPTR_HI", &q.rptr_hi),
            std::pair("WPTR", &q.wptr), std::pair("WPTR_HI", &q.wptr_hi)})
        if (what == of) *to = static_cast<std::uint32_t>(*value);
    }
    return true;
  });
  return all;
}

Result<std::vector<DumpedBuffer>, Diagnostic> coredump_buffers(std::string_view text, std::string_view file) {
  struct Open {
    std::uint64_t left;
    std::size_t line;
  };
  std::vector<DumpedBuffer> all;
  std::optional<Open> open;
  std::optional<Diagnostic> wrong;
  const auto close = [&](std::size_t n) {
    if (open && open->left != 0)
      wrong = error_at({.file = std::string(file), .line = n, .column = 1},
                       fmt::format("the indirect buffer of line {} ends here, {} dwords short", open->line, open->left),
                       "save the whole devcoredump");
    open.reset();
  };
  std::size_t last = 0;
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    last = n;
    const auto l = trimmed(line);
    if (l.starts_with(kBuffer)) {
      close(n);
      // "IB #0 0x7f1200000000 8 dw"
      const auto rest = trimmed(l.substr(std::min(l.find(' ', kBuffer.size()), l.size())));
      const auto blank = std::min(rest.find(' '), rest.size());
      const auto va = number_of(rest.substr(0, blank));
      const auto tail = trimmed(rest.substr(blank));
      const auto dwords = number_of(tail.substr(0, tail.find(' ')));
      if (va && dwords && tail.ends_with("dw")) {
        all.push_back({.va = *va});
        open = {*dwords, n};
      }
    } else if (open && open->left != 0) {
      const auto v = is_row(l) ? number_of(l) : std::nullopt;
      if (v && *v <= UINT32_MAX) all.back().dwords.push_back(static_cast<std::uint32_t>(*v)), --open->left;
      else close(n);
    }
    return !wrong;
  });
  if (!wrong) close(last + 1);
  if (wrong) return std::move(*wrong);
  return all;
}

}}}  // namespace sdma::v0_3::detail
