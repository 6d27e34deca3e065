// SPDX-License-Identifier: MIT
#include "archive.hpp"

#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>

namespace sdma::tool {
namespace {

constexpr int kMostLayers = 8;
constexpr std::uint64_t kHeader = 512;

/// A name for messages: no letter of it moves a terminal's cursor.
std::string printable(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return name;
}

Diagnostic too_much(const std::string& name, const std::string& limit) {
  return {.where = name,
          .message = fmt::format("the archive has more than {}, which is the most that is read", limit),
          .hint = "unpack it, and give only the files that matter: rings, recordings, core files, logs"};
}

/// Unpacks one layer after the other.
class Unpacking {
 public:
  /// `member`: the name of what is unpacked. `name`: the same with those of the archives around it.
  Result<void, Diagnostic> add(std::string_view bytes, const std::string& name, const std::string& member, int layers) {
    if (layers == 0) return too_much(name, fmt::format("{} layers", kMostLayers));
    const std::unique_ptr<archive, decltype(&archive_read_free)> in(archive_read_new(), archive_read_free);
    // A file of zeros would count as an empty tar, too.
    const auto* const packing = packing_of(bytes);
    const bool tar = packing && packing->name == kTar.name;
    if (tar) {
      (void)archive_read_support_format_tar(in.get());
    } else {
      for (const auto support :
           {archive_read_support_filter_gzip, archive_read_support_filter_xz, archive_read_support_filter_zstd,
            archive_read_support_filter_lz4, archive_read_support_filter_bzip2, archive_read_support_format_raw,
            archive_read_support_format_empty})
        (void)support(in.get());
    }
    const auto broken = [&] {
      const char* why = archive_error_string(in.get());
      return Diagnostic{.where = name,
                        .message = fmt::format("cannot be unpacked: {}", why ? why : "it is damaged"),
                        .hint = "the file may be cut off; copy it again"};
    };
    if (archive_read_open_memory(in.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) return broken();
    for (archive_entry* e = nullptr;;) {
      const int next = archive_read_next_header(in.get(), &e);
      if (next == ARCHIVE_EOF) return {};
      if (next < ARCHIVE_WARN) return broken();
      // An archive of nothing but headers ends, too.
      if (tar) bytes_ += kHeader;
      if (bytes_ > kMostUnpacked) return too_much(name, size_text(kMostUnpacked) + " of contents");
      const char* path = tar ? archive_entry_pathname(e) : nullptr;
      Member m{.name = path ? printable(path) : std::filesystem::path(member).stem().string()};
      if (tar && (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))) {
        if (archive_entry_filetype(e) != AE_IFDIR) left_out.push_back(std::move(m.name));
        continue;
      }
      std::optional<Diagnostic> cut;
      const void* block = nullptr;
      std::size_t n = 0;
      la_int64_t at = 0;  // a hole of a sparse file lies before it
      while (!cut) {
        const int read = archive_read_data_block(in.get(), &block, &n, &at);
        if (read == ARCHIVE_EOF) break;
        const auto begin = static_cast<std::uint64_t>(at);
        if (read < ARCHIVE_WARN || begin < m.bytes.size()) cut = broken();
        else if (begin > kMostUnpacked || std::max(bytes_, packed_) + begin + n > kMostUnpacked)
          return too_much(name, size_text(kMostUnpacked) + " of contents");
        else m.bytes.resize(begin), m.bytes.append(static_cast<const char*>(block), n);
      }
      if (is_packed(m.bytes)) {
        const auto inner = tar ? fmt::format("{}: {}", name, m.name) : name;
        packed_ += m.bytes.size();
        auto done = add(m.bytes, inner, m.name, layers - 1);
        packed_ -= m.bytes.size();
        if (cut) return std::move(*cut);
        if (!done) return done;
        continue;
      }
      if (cut) {
        if (!m.bytes.empty()) begun = std::move(m);
        return std::move(*cut);
      }
      if (all.size() == kMostMembers) return too_much(name, fmt::format("{} files", kMostMembers));
      bytes_ += m.bytes.size();
      all.push_back(std::move(m));
    }
  }
  std::vector<Member> all{};
  std::vector<std::string> left_out{};
  std::optional<Member> begun{};

 private:
  std::uint64_t bytes_ = 0;   // of members and headers
  std::uint64_t packed_ = 0;  // of the layers around them
};

}  // namespace

Result<Unpacked, Diagnostic> unpack_parts(std::string_view bytes, const std::string& name) {
  Unpacking u;
  auto done = u.add(bytes, name, name, kMostLayers);
  if (!done && u.all.empty() && !u.begun) return std::move(done.error());
  if (u.all.empty() && !u.begun)
    return Diagnostic{.where = name, .message = "the archive has no files", .hint = "give the files"};
  Unpacked all{.members = std::move(u.all), .left_out = std::move(u.left_out), .begun = std::move(u.begun)};
  if (!done) all.rest = std::move(done.error());
  return all;
}

Result<std::vector<Member>, Diagnostic> unpack(std::string_view bytes, const std::string& name) {
  auto all = unpack_parts(bytes, name);
  if (!all) return std::move(all.error());
  if (all->rest) return std::move(*all->rest);
  return std::move(all->members);
}

Result<void, Diagnostic> save_archive(const std::string& path, const std::vector<Member>& members) {
  std::string bytes;
  {
    const std::unique_ptr<archive, decltype(&archive_write_free)> out(archive_write_new(), archive_write_free);
    const auto take = [](archive*, void* to, const void* from, std::size_t n) {
      static_cast<std::string*>(to)->append(static_cast<const char*>(from), n);
      return static_cast<la_ssize_t>(n);
    };
    (void)archive_write_add_filter_gzip(out.get());
    (void)archive_write_set_format_ustar(out.get());
    bool done = archive_write_open(out.get(), &bytes, nullptr, take, nullptr) == ARCHIVE_OK;
    for (const auto& m : members) {
      const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> e(archive_entry_new(), archive_entry_free);
      archive_entry_set_pathname(e.get(), m.name.c_str());
      archive_entry_set_filetype(e.get(), AE_IFREG);
      archive_entry_set_perm(e.get(), 0644);
      archive_entry_set_mtime(e.get(), std::time(nullptr), 0);
      archive_entry_set_size(e.get(), static_cast<la_int64_t>(m.bytes.size()));
      done = done && archive_write_header(out.get(), e.get()) == ARCHIVE_OK &&
             archive_write_data(out.get(), m.bytes.data(), m.bytes.size()) == static_cast<la_ssize_t>(m.bytes.size());
    }
    if (archive_write_close(out.get()) != ARCHIVE_OK || !done) {
      const char* why = archive_error_string(out.get());
      return Diagnostic{.where = path, .message = fmt::format("cannot be packed: {}", why ? why : "out of memory")};
    }
  }
  return save_file(path, bytes);
}

}  // namespace sdma::tool
