// SPDX-License-Identifier: MIT
#include "expect.hpp"

#include "program.hpp"

#include <algorithm>

namespace sdma::explore {
namespace {

class Expecter {
 public:
  Expecter(Schedule& s, const Profile& profile, const std::vector<std::uint64_t>& last, Random& r)
      : s_(s), p_(compile(s, profile)), last_(last), r_(r) {}

  void run() {
    for (auto n = 1 + any(4); n-- > 0;) {
      if (any(3) == 0 && !s_.signals.empty()) value();
      else bytes();
    }
  }

 private:
  std::uint32_t any(std::size_t n) { return below(r_, static_cast<std::uint32_t>(n)); }

  void value() {
    const auto i = any(s_.signals.size());
    const auto begin = detail::canonical(s_, link_signal(i));
    const auto word = detail::cells_of(p_.cells, begin, s_.signals[i].bits / 8);
    std::uint64_t v = s_.signals[i].value;
    if (word.cells != 0) {
      v = 0;
      for (std::size_t c = 0; c < word.cells; ++c) v |= last_[word.first + c] << p_.shift(word, c);
    }
    // What a buffer holds at first may be anything else as well.
    for (std::size_t c = 0; c < word.cells; ++c)
      if (std::any_of(p_.cells.begin(), p_.cells.end(),
                      [&](const Cell& x) { return x.buffer && x.value != 0 && x.value == last_[word.first + c]; }))
        return;
    if (any(4) == 0) v = any(2) == 0 ? s_.signals[i].value : v + 1;
    s_.expect_value(link_signal(i), s_.signals[i].bits == 32 ? static_cast<std::uint32_t>(v) : v);
  }

  /// Is what cell `c` holds at the end what cell `d` held at first, or holds at the end?
  bool equal(std::size_t c, std::size_t d, bool old) const {
    return p_.cells[c].bytes == p_.cells[d].bytes && last_[c] == (old ? p_.cells[d].value : last_[d]);
  }
  bool follows(std::size_t c) const {
    return c + 1 < p_.cells.size() && p_.cells[c + 1].buffer &&
           p_.cells[c].va + p_.cells[c].bytes == p_.cells[c + 1].va;
  }

  void bytes() {
    std::vector<std::size_t> buffers;
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].buffer) buffers.push_back(c);
    if (buffers.empty()) return;
    const auto c = buffers[any(buffers.size())];
    const bool old = any(4) != 0, right = any(4) != 0;
    std::vector<std::size_t> others;
    for (const auto d : buffers)
      if (p_.cells[c].bytes == p_.cells[d].bytes && (old || c != d) && (!right || equal(c, d, old)))
        others.push_back(d);
    if (others.empty()) return;
    const auto d = others[any(others.size())];
    auto bytes = p_.cells[c].bytes;
    for (auto e = c, f = d; any(2) && follows(e) && follows(f) && (!right || equal(e + 1, f + 1, old)) &&
                            p_.cells[e + 1].bytes == p_.cells[f + 1].bytes;
         ++e, ++f)
      bytes += p_.cells[e + 1].bytes;
    const Schedule::Range left{GpuVa{p_.cells[c].va}, bytes}, from{GpuVa{p_.cells[d].va}, bytes};
    if (old) s_.expect_old(left, from);
    else s_.expect_equal(left, from);
  }

  Schedule& s_;
  const Program p_;
  const std::vector<std::uint64_t>& last_;
  Random& r_;
};

}  // namespace

void expect(Schedule& s, const Profile& profile, const std::vector<std::uint64_t>& last, Random& r) {
  Expecter{s, profile, last, r}.run();
}

}  // namespace sdma::explore
