// SPDX-License-Identifier: MIT
#pragma once
// Options that several verbs have, and what they name: schedules, machines, ordering rules, names, rings.
//
//   add_size(verb, "--bytes", o->bytes, "bytes to move");    --bytes 64K
//   add_settings(verb, o->parse.set);                  --set N=8 --set chunk=1M
//   add_shown_gpus(verb, o->gpus);                     --gpu=0,3
//   add_figure(verb, o->figure, "--plot");             --title TEXT, --size 800x400
//   auto s = load_schedule(path, text, o->parse);
//   add_device(verb, o->device, "device to run on", "soft");    --device soft|kfd|cuda|rocr
//   add_machine(verb, o->machine);                     --machine PATH, --parameter NAME=VALUE
//   auto m = load_machine(o->machine);
//   const auto assumed = add_profile(verb, o->profile);    --profile=rocr --assume fence=full
//   action = [o, assumed] { assumed(); ... };
//   const auto names = load_names(o->names);           --names FILE, in the form of sdma/core/names.hpp
//   add_positions(verb, o->rptr, o->wptr);             --rptr N, --wptr N
//   add_buffers(verb, o->buffers, "file that holds the memory at VA; may be repeated");    --ib FILE@VA
//
// What `load_...` returns nothing for has been reported.
#include "figure.hpp"
#include "msccl/msccl.hpp"
#include "options.hpp"
#include "ring_text.hpp"
#include "sdma/check/check.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/names.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/open.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/machine.hpp"
#include "verb.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::tool {

/// A size of at least one byte, also in the letters of nccl-tests: 4k, 16m.
std::optional<std::uint64_t> parse_positive_size(std::string);
/// An option with such a size, of at most `most`; 0: of any.
template <class T>
Option add_size(VerbOptions& verb, const std::string& names, T& size, const std::string& doc, std::uint64_t most = 0) {
  const auto parse = [most](const std::string& text) {
    const auto bytes = parse_positive_size(text);
    return bytes && (most == 0 || *bytes <= most) ? bytes : std::nullopt;
  };
  const auto wanted = most == 0 ? "a size: write at least 1 byte, or 4K, 16M, 1G: powers of 1024"
                                : "a size from 1 byte to " + size_text(most);
  return add_parsed(verb, names, size, parse, wanted, doc).type("SIZE");
}

void add_settings(VerbOptions&, std::vector<ParseOptions::Setting>&, const std::string& option = "--set",
                  const std::string& form = "NAME=VALUE",
                  const std::string& doc = "set a param of the schedule; may be repeated");
/// An option that may be repeated. `form`: the form of each value, such as NAME=PATH.
void add_pairs(VerbOptions&, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>&, const std::string& doc);

/// --gpu=0,3: which GPUs a picture or a trace shows; empty: all.
void add_shown_gpus(VerbOptions&, std::vector<std::uint32_t>&);

/// An option that draws an SVG to a path; a name such as x.png is refused.
Option add_picture(VerbOptions&, const std::string& name, std::string& path, const std::string& doc);
/// --title and --size. `picture`: the option that draws it, such as --plot.
void add_figure(VerbOptions&, FigureOptions&, const std::string& picture);

/// A warning that a trace lacks events, and its hint: how to record them all. `where`: the trace.
Diagnostic lost_events(const std::string& where, std::uint64_t lost, const std::string& hint);

/// --device, with the devices of sdma/device/open.hpp. --help says what `doc` says, what each of them is, and which
/// one is taken without the option.
Option add_device(VerbOptions&, DeviceKind&, const std::string& doc, const std::string& otherwise);
/// The same where there may be none. `also`: what --device=simulate means, which has no device; "": an unknown word.
Option add_device(VerbOptions&, std::optional<DeviceKind>&, const std::string& doc, const std::string& also,
                  const std::string& otherwise);

/// The library's messages about a schedule with its file, which the library does not know.
std::vector<Diagnostic> in_file(const std::string& path, std::vector<Diagnostic>);
/// If the text is XML of MSCCL, makes a schedule of it (msccl/msccl.hpp), and reports notes. Nothing after an error,
/// which is reported.
std::optional<msccl::Made> make_schedule(const std::string& path, std::string& text,
                                         std::vector<ParseOptions::Setting>&);
/// The schedule of a text, or of XML of MSCCL; nothing if it has errors, each of which is then reported.
std::optional<Schedule> load_schedule(const std::string& path, std::string text, ParseOptions,
                                      SourceMap* map = nullptr);

struct MachineOptions {
  std::string path{};  ///< "": eight MI300X
  std::vector<std::pair<std::string, std::string>> changes{};
  Through through{};
  bool given() const noexcept { return !path.empty() || !changes.empty() || through != Through::rings; }
};
void add_machine(VerbOptions&, MachineOptions&);
/// --through alone.
void add_through(VerbOptions&, Through&);
/// The text of the file of a node or a machine. If it cannot be read, the hint names `command`, which prints such a
/// file, and the layouts that may be given instead.
Result<std::string, Diagnostic> read_node(const std::string& path, std::string_view command);
/// The parameter that an option names.
std::optional<Cost> parameter_named(const std::string& option, const std::string& word);
std::optional<MachineDescription> load_machine(const MachineOptions&);
/// The exit code after load_machine has returned nothing.
int exit_code(const MachineOptions&);
/// --verbose: `machine_text` follows the report.
void add_verbose(VerbOptions&, bool&);
/// Where the machine is from, and what is used of it although it was not said.
std::string machine_text(const MachineDescription&);

/// The function that it returns adds what --assume names, when the verb runs: a --profile may follow it.
std::function<void()> add_profile(VerbOptions&, Profile&);

/// "-" is standard input.
Result<NameTable, Diagnostic> load_names(const std::string& path);

void add_positions(VerbOptions&, std::optional<std::uint64_t>& rptr, std::optional<std::uint64_t>& wptr);

/// A file whose bytes are the memory at an address.
struct FileAt {
  std::string path;
  std::uint64_t va{};
};
void add_buffers(VerbOptions&, std::vector<FileAt>&, const std::string& doc);
Result<std::vector<IndirectBuffer>, Diagnostic> read_buffers(const std::vector<FileAt>&);

}  // namespace sdma::tool
