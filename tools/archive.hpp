// SPDX-License-Identifier: MIT
#pragma once
// Archives of a bug report: gzip, xz and other compressed files, and tar of them, read and written in memory.
//
//   if (is_packed(bytes))
//     if (auto all = unpack(bytes, "report.tar.gz")) for (const auto& m : all->members) use(m.name, m.bytes);
//   auto saved = save_archive("report.tar.gz", {{"answer.txt", text}});
//
// A compressed file is one member, whose name has no suffix: "dmesg.gz" has "dmesg". Members that are packed themselves
// are unpacked, too, down to eight layers. Nothing is written to disk. At most kMostMembers files and kMostUnpacked
// bytes, headers included, and as many in the layers around them: beyond, an error names the limit. Only regular files
// count: a link or a device of an archive is left out, and nothing is followed. A name is only a name:
// "../../etc/passwd" is printed, and its control characters are '?'. What was unpacked before an error stays.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool {

inline constexpr std::size_t kMostMembers = 1000;
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;

struct Member {
  std::string name{};   ///< its path in the archive
  std::string bytes{};  ///< its contents
};

/// A form that has to be unpacked.
struct Packing {
  std::string_view magic{};  ///< what such a file has
  std::size_t at{};          ///< at this byte
  std::string_view name{}, command{};
};
inline constexpr Packing kTar{"ustar", 257, "tar", "tar xf"};
inline constexpr Packing kPackings[] = {{"\x1f\x8b\x08", 0, "gzip", "gzip -d"},
                                        {"\3757zXZ", 0, "xz", "xz -d"},
                                        {"\x28\xb5\x2f\xfd", 0, "zstd", "zstd -d"},
                                        {"\x04\x22\x4d\x18", 0, "lz4", "lz4 -d"},
                                        {"BZh", 0, "bzip2", "bzip2 -d"},
                                        kTar};

/// The form of a file that begins with these bytes; null: it does not have to be unpacked.
inline const Packing* packing_of(std::string_view head) noexcept {
  for (const auto& p : kPackings)
    if (head.size() > p.at && head.substr(p.at).starts_with(p.magic)) return &p;
  return nullptr;
}
inline bool is_packed(std::string_view head) noexcept { return packing_of(head) != nullptr; }

/// What an archive has.
struct Unpacked {
  std::vector<Member> members{};
  std::vector<std::string> left_out{};  ///< links and devices: their names
  std::optional<Diagnostic> rest{};     ///< why there are not more members: it is cut off, damaged or too large
  /// The beginning of the member in which that happened: that of a log is a log, but that of a dump is another dump.
  std::optional<Member> begun{};
};
/// `name`: the file's, for errors. A diagnostic: no member could be read, nor the beginning of one.
Result<Unpacked, Diagnostic> unpack_parts(std::string_view bytes, const std::string& name);
/// A diagnostic: not all of them could be read.
Result<std::vector<Member>, Diagnostic> unpack(std::string_view bytes, const std::string& name);

/// Writes a tar.gz, whole or not at all.
Result<void, Diagnostic> save_archive(const std::string& path, const std::vector<Member>& members);

}  // namespace sdma::tool
