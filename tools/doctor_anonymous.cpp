// SPDX-License-Identifier: MIT
#include "doctor_anonymous.hpp"

#include "../lib/core/maps.hpp"
#include "../lib/core/words.hpp"
#include "sdma/core/file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace sdma::tool {
namespace {

using detail::take_line;

bool is_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

void replace_words(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;) {
    const auto end = at + word.size();
    const bool whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, word.size(), by);
    at += whole ? by.size() : 1;
  }
}

/// "process NAME pid 4711": the name, which may have blanks.
void replace_programs(std::string& line) {
  constexpr std::size_t kLongest = 64;  // the kernel has 15 characters, and the name may be in a path
  for (const std::string_view before : {"rocess ", "hread ", "process_name: ", "Comm: "})
    for (std::size_t at = 0; (at = line.find(before, at)) != line.npos;) {
      at += before.size();
      auto end = line.npos;
      for (const std::string_view after : {" pid ", " PID: ", " tid ", "(pasid"})
        end = std::min(end, line.find(after, at));
      if (before == "Comm: ") end = std::min(line.find(' ', at), line.size());
      if (end == line.npos || end - at > kLongest) continue;
      line.replace(at, end - at, "program");
    }
}

/// Does a line of the kernel's log say something about GPUs, their links or their memory?
bool is_of_gpus(std::string_view line) {
  constexpr auto kDrivers = std::to_array<std::string_view>(
      {"amdgpu", "kfd", "drm", "AMD-Vi", "pcieport", "AER:", "mce:", "MCE", "EDAC", "iommu", "Memory access fault"});
  return std::any_of(kDrivers.begin(), kDrivers.end(), [&](std::string_view d) { return line.find(d) != line.npos; });
}

/// A mapped file whose name says nothing about a user or a program.
bool is_of_system(std::string_view file) {
  if (file.empty() || file.starts_with('[')) return true;
  constexpr auto kFolders = std::to_array<std::string_view>(
      {"/usr/lib/", "/lib/", "/lib64/", "/opt/rocm", "/dev/dri/", "/dev/kfd", "/dev/zero", "/memfd:sdma-kfd"});
  return file.find("..") == file.npos && std::any_of(kFolders.begin(), kFolders.end(),
                                                     [&](std::string_view folder) { return file.starts_with(folder); });
}

template <class Fn> std::string each_line_of(std::string_view text, Fn fn) {
  std::string out;
  while (!text.empty()) fn(std::string(take_line(text)), out);
  return out;
}

std::string maps(std::string_view text) {
  return each_line_of(text, [](const std::string& line, std::string& out) {
    const auto m = detail::maps_line(line);
    if (!m) return;
    const bool known = is_of_system(m->path);
    out.append(known ? line : line.substr(0, static_cast<std::size_t>(m->path.data() - line.data())) + "/..") += '\n';
  });
}

std::string status(std::string_view text) {
  return each_line_of(text, [](const std::string& line, std::string& out) {
    for (const std::string_view name : {"Name:", "Uid:", "Gid:", "Groups:"})
      if (line.starts_with(name)) return;
    out.append(line) += '\n';
  });
}

}  // namespace

std::string AnonymousNames::words(std::string_view text) const {
  std::string out(text);
  for (const auto& [word, by] : words_) replace_words(out, word, by);
  return out;
}

std::string AnonymousNames::log(std::string_view text, std::size_t& left_out) const {
  return each_line_of(text, [&](std::string line, std::string& out) {
    if (!is_of_gpus(line)) return void(++left_out);
    replace_programs(line);
    out.append(words(line)) += '\n';
  });
}

std::string AnonymousNames::file(std::string_view path, std::string bytes) const {
  // A ring is packets.
  if (path.find("/amdgpu_ring_") != path.npos) return bytes;
  if (path.ends_with("/maps")) return maps(bytes);
  if (path.ends_with("/status")) return status(bytes);
  std::size_t left_out = 0;
  if (path.starts_with("/sys/fs/pstore/")) return log(bytes, left_out);
  return each_line_of(bytes, [&](std::string line, std::string& out) {
    replace_programs(line);
    out.append(words(line)) += '\n';
  });
}

AnonymousNames names_of_machine() {
  std::vector<std::pair<std::string, std::string>> words;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) {
    const std::string name = host.data();
    words.emplace_back(name, "host");
    if (const auto dot = name.find('.'); dot != name.npos) words.emplace_back(name.substr(0, dot), "host");
  }
  // Of people, and not of services: daemon, bin.
  constexpr unsigned kFirstUser = 1000, kOverflow = 65534;
  const auto users = read_file("/etc/passwd");
  for (std::string_view rest = users ? std::string_view(*users) : ""; !rest.empty();) {
    auto line = take_line(rest);
    const auto name = detail::take_word(line, ":");
    detail::take_word(line, ":");
    const auto uid = detail::whole_number<unsigned>(detail::take_word(line, ":"));
    if (uid && *uid >= kFirstUser && *uid != kOverflow) words.emplace_back(name, "user");
  }
  // Those of a directory service are not in that file.
  std::error_code e;
  for (std::filesystem::directory_iterator at("/home", e), end; !e && at != end; at.increment(e))
    words.emplace_back(at->path().filename().string(), "user");
  std::erase_if(words, [](const auto& w) { return w.first.empty(); });
  // Longer ones first: "gpu7.lab" before "gpu7".
  std::stable_sort(words.begin(), words.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return AnonymousNames(std::move(words));
}

}  // namespace sdma::tool
