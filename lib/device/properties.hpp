// SPDX-License-Identifier: MIT
#pragma once
// The properties files of the driver's topology: lines of a name and a number.
//
//   const Properties p{"cpu_cores_count 0\nsimd_count 304\n"};
//   p["simd_count"] == 304;  p["absent"] == 0
//
// Allocates. A value; any thread may read it. A line that is not of this form is left out.
#include "../core/words.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

class Properties {
 public:
  explicit Properties(std::string_view text) {
    while (!text.empty()) {
      const auto line = take_line(text);
      const auto space = std::min(line.find(' '), line.size());
      const auto v = whole_number<std::uint64_t>(line.substr(std::min(space + 1, line.size())));
      if (v) values_.emplace(line.substr(0, space), *v);
    }
  }
  bool has(std::string_view key) const { return values_.contains(key); }
  std::uint64_t operator[](std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? 0 : it->second;
  }
  std::uint32_t u32(std::string_view key) const { return static_cast<std::uint32_t>((*this)[key]); }

 private:
  std::map<std::string, std::uint64_t, std::less<>> values_;
};

}}}  // namespace sdma::v0_3::detail
