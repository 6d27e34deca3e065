// SPDX-License-Identifier: MIT
// Finds FENCEs and ATOMICs whose word lies in VRAM, after data that the same queue stored to host memory (Q3).
#include "../schedule/link.hpp"
#include "reporter.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class VramFences {
 public:
  VramFences(const Model& m, Reporter& r) : m_(m), r_(r) {}

  void run() {
    if (m_.profile.vram_fence_covers) return;
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      if (!m_.programs[q].network) queue(q);  // one thread stores what it brings, and the word last
  }

 private:
  bool stores_to_host(const Program& p, const Item& item) const {
    for (auto t = item.touch; t < item.touch + item.touches; ++t)
      if (p.touches[t].mode == Mode::write && m_.place_at(p.touches[t].begin) == Place::host()) return true;
    return false;
  }

  /// Does another agent wait for this word, or read it? The queue itself reads no data of the memory of the host.
  bool announces(std::uint32_t word, std::uint32_t by) const {
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a)
      for (const auto& step : m_.agents[a].steps)
        if (a != by && step.sync && step.sync->word == word &&
            (step.kind == Step::Kind::poll || step.kind == Step::Kind::sample))
          return true;
    return false;
  }

  /// One report for a queue: the others of its fences have the same cause. A
  /// second submit begins with the data that the first one left in flight.
  void queue(std::uint32_t q) {
    const auto& p = m_.programs[q];
    const auto items = static_cast<std::uint32_t>(p.items.size());
    const auto last = std::min(m_.agents[q].submits, 2u) * items;
    std::uint32_t data = 0;
    for (std::uint32_t position = 1; position <= last; ++position) {
      const auto& item = *m_.item_at(q, position);
      if ((item.moves() || item.what == What::stamp) && stores_to_host(p, item)) {
        if (data == 0) data = position;
      } else if (item.what == What::post && item.sync.word != kNone) {
        const auto place = m_.place_at(item.sync.address);
        if (place == Place::host()) data = 0;
        else if (place && data != 0 && announces(item.sync.word, q)) return report({q, position}, {q, data}, item);
      }
    }
  }

  void report(Position fence, Position data, const Item& item) {
    r_.add({.rule = "vram-fence",
            .places = {fence, data},
            .message = r_.place(fence) + " stores to " + r_.word(m_.words[item.sync.word]) +
                       " in VRAM, so it may land before " + r_.place(data) + " is complete in host memory",
            .hint = "announce data in host memory with a word in host memory, or assume vram_fence=covers",
            .rests_on = {"Q3"}});
  }

  const Model& m_;
  Reporter& r_;
};

}  // namespace

void find_vram_fences(const Model& m, Reporter& r) { VramFences{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
