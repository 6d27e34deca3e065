// SPDX-License-Identifier: MIT
#pragma once
// Reads MessagePack where it lies, without allocation: the metadata of code objects.
//
//   MsgPack m(bytes);
//   for (auto n = m.map(); n > 0; --n)
//     if (m.text() == ".name") name = m.text(); else m.skip();
//
// The bytes may be anything, and may change meanwhile: no read leaves them. After an error, or a value of another kind
// than the one asked for, `ok` is false, and every further read returns nothing. One thread.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sdma::emulator {

class MsgPack {
 public:
  explicit MsgPack(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  bool ok() const noexcept { return ok_; }
  /// The number of pairs of the map that begins here, whose keys and values follow.
  std::uint32_t map() noexcept { return count(0x80, 0xde); }
  /// The number of elements of the array that begins here.
  std::uint32_t array() noexcept { return count(0x90, 0xdc); }
  /// The string here; empty if the value is of another kind. The bytes stay where they are.
  std::string_view text() noexcept {
    const auto tag = take(1);
    std::uint64_t n = 0;
    if (tag >= 0xa0 && tag <= 0xbf) n = tag - 0xa0;
    else if (tag >= 0xd9 && tag <= 0xdb) n = take(std::size_t{1} << (tag - 0xd9));
    else ok_ = false;
    return {reinterpret_cast<const char*>(advance(n)), ok_ ? static_cast<std::size_t>(n) : 0};
  }
  /// The number here, which is not negative.
  std::uint64_t number() noexcept {
    const auto tag = take(1);
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return take(std::size_t{1} << (tag - 0xcc));
    ok_ = false;
    return 0;
  }
  /// Passes one value of any kind, with all that it contains.
  void skip() noexcept {
    for (std::uint64_t pending = 1; ok_ && pending != 0; --pending) {
      const auto tag = take(1);
      if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) continue;
      if (tag < 0x90) pending += 2 * (tag - 0x80);
      else if (tag < 0xa0) pending += tag - 0x90;
      else if (tag < 0xc0) advance(tag - 0xa0);
      else if (tag >= 0xc4 && tag <= 0xc6) advance(take(std::size_t{1} << (tag - 0xc4)));
      else if (tag >= 0xc7 && tag <= 0xc9) advance(take(std::size_t{1} << (tag - 0xc7)) + 1);
      else if (tag == 0xca || tag == 0xcb) advance(tag == 0xca ? 4 : 8);
      else if (tag >= 0xcc && tag <= 0xd3) advance(std::uint64_t{1} << (tag - 0xcc) % 4);
      else if (tag >= 0xd4 && tag <= 0xd8) advance((std::uint64_t{1} << (tag - 0xd4)) + 1);
      else if (tag >= 0xd9 && tag <= 0xdb) advance(take(std::size_t{1} << (tag - 0xd9)));
      else if (tag >= 0xdc && tag <= 0xdd) pending += take(std::size_t{2} << (tag - 0xdc));
      else if (tag >= 0xde && tag <= 0xdf) pending += 2 * take(std::size_t{2} << (tag - 0xde));
      else ok_ = false;
    }
  }

 private:
  /// The elements of a map or an array: `fix` is its tag for up to 15, and `wide` the first tag of the longer forms.
  std::uint32_t count(unsigned fix, unsigned wide) noexcept {
    const auto tag = take(1);
    if (tag >= fix && tag < fix + 16) return static_cast<std::uint32_t>(tag - fix);
    if (tag == wide || tag == wide + 1) return static_cast<std::uint32_t>(take(tag == wide ? 2 : 4));
    ok_ = false;
    return 0;
  }
  /// The next bytes as a number, which MessagePack stores with the highest byte first.
  std::uint64_t take(std::size_t bytes) noexcept {
    const auto* at = advance(bytes);
    std::uint64_t v = 0;
    for (std::size_t i = 0; ok_ && i < bytes; ++i) v = v * 256 + std::to_integer<std::uint64_t>(at[i]);
    return v;
  }
  const std::byte* advance(std::uint64_t bytes) noexcept {
    const auto* at = rest_.data();
    if (bytes > rest_.size()) ok_ = false;
    if (ok_) rest_ = rest_.subspan(static_cast<std::size_t>(bytes));
    return at;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace sdma::emulator
