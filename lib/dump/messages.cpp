// SPDX-License-Identifier: MIT
#include "messages.hpp"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Which messages a text may have: those whose needle is in it.
class MessageIndex {
 public:
  MessageIndex() {
    for (const auto& m : messages()) phrases_.emplace_back(m.phrase);
    for (std::size_t i = 0; i < phrases_.size(); ++i) {
      const auto key = key_of(phrases_[i].needle().data());
      rows_[key].push_back(static_cast<std::uint32_t>(i));
      seen_.set(slot(key));
    }
  }

  std::optional<FoundMessage> find(std::string_view text) const {
    std::optional<FoundMessage> best;
    auto first = phrases_.size();
    for (std::size_t i = 0; i + 4 <= text.size(); ++i) {
      const auto key = key_of(text.data() + i);
      if (!seen_.test(slot(key))) continue;
      const auto rows = rows_.find(key);
      if (rows == rows_.end()) continue;
      for (const auto row : rows->second) {
        if (row >= first) continue;
        if (const auto m = phrases_[row].find(text)) {
          best = FoundMessage{&messages()[row], *m};
          first = row;
        }
      }
    }
    return best;
  }

 private:
  static std::uint32_t key_of(const char* at) noexcept {
    std::uint32_t key = 0;
    std::memcpy(&key, at, sizeof key);
    return key;
  }
  static std::size_t slot(std::uint32_t key) noexcept { return key % kSlots; }

  static constexpr std::size_t kSlots = 65521;

  std::vector<Phrase> phrases_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> rows_;
  std::bitset<kSlots> seen_;
};

}  // namespace

std::optional<FoundMessage> find_message(std::string_view text) {
  static const MessageIndex index;
  return index.find(text);
}

}}}  // namespace sdma::v0_3::detail
