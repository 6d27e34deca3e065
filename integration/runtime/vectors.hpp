// SPDX-License-Identifier: MIT
#pragma once
// Commands of a runtime, and the dwords that it wrote for them: a file of one command a line.
//
//   isa=gfx942 atomics=1 xgmi=1 cap=0 profiling=0 leads=0 kind=copy dst=0x1000 src=0x2000 bytes=4096 deps=3:1, out=0:1
//       mailbox=0 event=7 => 0 b0000008 00000188 00006000 ...               (in one line)
//
//   auto all = read_vectors("commands.txt", text);
//   for (const auto& v : *all) if (auto d = compare(v)) puts(to_string(v, *d).c_str());
//
//   atomics, xgmi       what the link to the host can do
//   cap                 hex: the longest copy of a packet; 0: the runtime's own
//   profiling, leads    time stamps; the command leads a gang, whose signals `gang` lists
//   kind                copy, copy_blocking, fill (`value` in hex, `count` in dwords), box (`box` = x,y,z; dst and src
//                       = base,pitch,slice,x,y,z)
//   deps, out, gang     signals, as INDEX:VALUE with the value in hex; `gang` has indices alone
//   mailbox, event      of `out`
//   =>                  the status of the call, where 0 is success, and the dwords in hex
//
// Signal i lies at kSignals + 128 * i: its value at +8, its time stamps at +64 and +96. A copy that blocks, and a fill,
// complete a signal of the runtime, which takes 63 and 62 in turn for each kind of engine and link. A line that is
// empty or begins with # is left out.
//
// Reading returns a Diagnostic that names the line. Nothing is shared; any thread may read and compare.
#include "command.hpp"
#include "sdma/core/diagnostic.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

inline constexpr sdma::GpuVa kSignals{0x600000000000};  ///< where signal 0 lies

/// A command, and what is expected of it.
struct Vector {
  std::size_t line{};                          ///< in its file, from 1
  std::string isa{}, kind{};                   ///< as the file says
  Engine engine{};                             ///< that it is for
  std::vector<LinearCopy> copies{};            ///< of a copy
  std::optional<LinearFill> fill{};            ///< of a fill
  std::optional<Box> box{};                    ///< of a box
  std::vector<SignalView> after{}, members{};  ///< as Command has them
  SignalView out{};                            ///< what it completes
  bool stamps = false;                         ///< as Command has it
  bool refused = false;                        ///< the runtime refused the command
  std::vector<std::uint32_t> dwords{};         ///< what the runtime wrote

  /// It refers to this vector.
  Command command() const;
};

/// Where the dwords of a command first differ.
struct Difference {
  std::size_t at{};                      ///< the dword; the length of the shorter, if one begins the other
  std::vector<std::uint32_t> written{};  ///< ours; empty if the command was refused
};

/// All vectors of a text. `name` is that of its file, for errors.
sdma::Result<std::vector<Vector>, sdma::Diagnostic> read_vectors(std::string_view name, std::string_view text);
/// Writes the command, filled up to the shortest submission of its engine; nullopt: as the runtime did.
std::optional<Difference> compare(const Vector&);
/// "line 3: copy on gfx942: dword 5 is 0x0fff0004, and 0x0fff0008 here"
std::string to_string(const Vector&, const Difference&);

}  // namespace runtime
