// SPDX-License-Identifier: MIT
#pragma once
// Leaves names of hosts, users and processes out of what `sdma doctor --collect --anonymous` takes.
//
//   const auto names = names_of_machine();
//   std::size_t left = 0;
//   archive(names.log(text, left));                 // lines that name no driver of GPUs are left out, and counted
//   archive(names.file("/proc/4711/maps", text));
//
//   a host's name, a user's, a path below a home                  anywhere, as whole words: host, user, /..
//   "Process NAME pid 4711 thread NAME pid 4720"                  in a log or a dump: program
//   "Name:", "Uid:", "Gid:" and "Groups:" of /proc/PID/status     no line
//   files that a process has mapped                               /.., unless they are of the system or of ROCm
//
// A name that has other words around it, such as in the text of another program, is not recognised: so lines that are
// not of GPUs are left out. Pure but for names_of_machine, which reads /etc/passwd. No errors.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::tool {

class AnonymousNames {
 public:
  /// `words`: each is replaced where it stands as a whole word.
  explicit AnonymousNames(std::vector<std::pair<std::string, std::string>> words = {}) : words_(std::move(words)) {}

  std::string log(std::string_view text, std::size_t& left_out) const;
  std::string file(std::string_view path, std::string bytes) const;
  /// Without names in general.
  std::string words(std::string_view text) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

AnonymousNames names_of_machine();

}  // namespace sdma::tool
