// SPDX-License-Identifier: MIT
#include "shared_options.hpp"

#include "../lib/core/words.hpp"
#include "core/nearest.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "sdma/device/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace sdma::tool {
namespace {

/// NAME=SOMETHING
template <class Pair> std::optional<Pair> parse_pair(const std::string& given) {
  const auto at = given.find('=');
  if (at == 0 || at == given.npos || at + 1 == given.size()) return {};
  return Pair{given.substr(0, at), given.substr(at + 1)};
}

/// The options with the same name, or all options if no name matches.
std::string options_like(std::string_view given) {
  const auto name = given.substr(0, given.find('='));
  std::string same, all;
  for (const auto x : profile_options()) {
    all += (all.empty() ? "" : " ") + std::string(x);
    if (x.substr(0, x.find('=')) == name) same += (same.empty() ? "" : " ") + std::string(x);
  }
  return same.empty() ? all : same;
}

/// Bytes, or dwords with the suffix dw.
std::optional<std::uint64_t> parse_position(const std::string& text) {
  const bool dwords = text.ends_with("dw");
  const auto n = parse_size(dwords ? text.substr(0, text.size() - 2) : text);
  return n && dwords ? std::optional(*n * 4) : n;
}
void add_position(VerbOptions& verb, const std::string& name, std::optional<std::uint64_t>& value,
                  const std::string& doc) {
  add_parsed(verb, name, value, parse_position, "a position, such as 0x40 (bytes) or 16dw (dwords)", doc).type("N");
}

constexpr std::uint64_t kLeastPixels = 200, kMostPixels = 10'000;

/// WIDTHxHEIGHT
std::optional<std::pair<double, double>> parse_pixels(const std::string& given) {
  const auto x = given.find('x');
  if (x == given.npos) return {};
  const auto side = [](const std::string& text) {
    const auto n = parse_size(text);
    return n && *n >= kLeastPixels && *n <= kMostPixels ? std::optional(static_cast<double>(*n)) : std::nullopt;
  };
  const auto width = side(given.substr(0, x)), height = side(given.substr(x + 1));
  return width && height ? std::optional(std::pair(*width, *height)) : std::nullopt;
}

/// Numbers with commas.
std::optional<std::vector<std::uint32_t>> parse_shown_gpus(const std::string& given) {
  std::vector<std::uint32_t> out;
  for (const auto part : detail::between_commas(given)) {
    const auto n = parse_size(part);
    if (!n || *n > 0xffff) return {};
    out.push_back(static_cast<std::uint32_t>(*n));
  }
  return out;
}

/// FILE@VA
std::optional<FileAt> parse_file_at(const std::string& given) {
  const auto at = given.rfind('@');
  const auto va = at == std::string::npos ? std::nullopt : parse_size(given.substr(at + 1));
  return va && at != 0 ? std::optional(FileAt{given.substr(0, at), *va}) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_positive_size(std::string text) {
  if (text.ends_with('k') || text.ends_with('m') || text.ends_with('g'))
    text.back() = static_cast<char>(text.back() - 'a' + 'A');
  const auto size = parse_size(text);
  return size && *size > 0 ? size : std::nullopt;
}

void add_settings(VerbOptions& verb, std::vector<ParseOptions::Setting>& set, const std::string& option,
                  const std::string& form, const std::string& doc) {
  add_each(verb, option, set, parse_pair<ParseOptions::Setting>, form, doc).type(form);
}

void add_pairs(VerbOptions& verb, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>& pairs, const std::string& doc) {
  add_each(verb, option, pairs, parse_pair<std::pair<std::string, std::string>>, form, doc).type(form);
}

Option add_picture(VerbOptions& verb, const std::string& name, std::string& path, const std::string& doc) {
  const auto take = [&path](const std::string& given) -> std::string {
    // Names that promise another form.
    for (const std::string_view other : {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp", ".eps", ".ps", ".html"})
      if (given.ends_with(other))
        return "'" + given + "' is not a name for an SVG: write NAME.svg, which browsers show";
    return path = given, "";
  };
  return verb.parsed(name, take, doc);
}

void add_figure(VerbOptions& verb, FigureOptions& figure, const std::string& picture) {
  verb.value("--title", figure.title, "with " + picture + ": the title of the picture").type("TEXT");
  add_parsed(verb, "--size", figure.size, parse_pixels,
             fmt::format("a width and a height from {} to {} pixels, such as 800x400", kLeastPixels, kMostPixels),
             "with " + picture + ": the size of the picture in pixels; it is larger where its text needs that")
      .type("WIDTHxHEIGHT");
}
void add_shown_gpus(VerbOptions& verb, std::vector<std::uint32_t>& gpus) {
  add_parsed(verb, "--gpu", gpus, parse_shown_gpus, "a list of GPUs, such as 0,3",
             "show only these GPUs, the links from and to them, and the host")
      .type("N,M..");
}

namespace {

constexpr const char* kWhatDevicesAre =
    "soft, a software node; kfd, the node of the kernel driver; cuda, NVIDIA GPUs; rocr, AMD GPUs through ROCr";

template <class D> std::vector<std::pair<std::string, D>> device_words() {
  std::vector<std::pair<std::string, D>> words;
  for (const auto kind : kDeviceKinds) words.emplace_back(name(kind), kind);
  return words;
}

}  // namespace

Diagnostic lost_events(const std::string& where, std::uint64_t lost, const std::string& hint) {
  return {.severity = Severity::warning,
          .where = where,
          .message = fmt::format("the trace is not complete: {} lost during recording",
                                 lost == 1 ? "1 event was" : fmt::format("{} events were", lost)),
          .hint = hint};
}

Option add_device(VerbOptions& verb, DeviceKind& device, const std::string& doc, const std::string& otherwise) {
  return add_choice(verb, "--device", device, device_words<DeviceKind>(),
                    doc + ": " + kWhatDevicesAre + " (default: " + otherwise + ")");
}

Option add_device(VerbOptions& verb, std::optional<DeviceKind>& device, const std::string& doc, const std::string& also,
                  const std::string& otherwise) {
  auto words = device_words<std::optional<DeviceKind>>();
  if (!also.empty()) words.emplace_back("simulate", std::nullopt);
  return add_choice(
      verb, "--device", device, std::move(words),
      doc + ": " + kWhatDevicesAre + (also.empty() ? "" : "; simulate, " + also) + " (default: " + otherwise + ")");
}

std::vector<Diagnostic> in_file(const std::string& path, std::vector<Diagnostic> all) {
  for (auto& d : all) d.where = shown(path) + (d.where.empty() ? "" : ": " + d.where);
  return all;
}

std::optional<msccl::Made> make_schedule(const std::string& path, std::string& text,
                                         std::vector<ParseOptions::Setting>& set) {
  msccl::Made made;
  const auto wrong = msccl::make_schedule(text, shown(path), set, made);
  report(wrong ? wrong->all : made.notes);
  return wrong ? std::nullopt : std::optional(std::move(made));
}

std::optional<Schedule> load_schedule(const std::string& path, std::string text, ParseOptions options, SourceMap* map) {
  options.map = map;
  options.read = files_beside(path);
  msccl::Made made;
  auto s = msccl::read_schedule(std::move(text), shown(path), options, &made);
  report(made.notes);
  if (s) return std::move(*s);
  return report(s.error()), std::nullopt;
}

void add_machine(VerbOptions& verb, MachineOptions& o) {
  verb.value("--machine", o.path,
             "the machine: a machine file, the output of sdma topology --json, or a layout such as mi355x:8, mesh:16, "
             "ring:8, switch:8x400G or nodes:2x8 (default: eight MI300X)")
      .type("PATH|LAYOUT");
  add_pairs(verb, "--parameter", "NAME=VALUE", o.changes,
            "change a parameter of the machine, such as engine.poll_ns=1000; may be repeated");
  add_through(verb, o.through);
}

void add_through(VerbOptions& verb, Through& through) {
  add_choice<Through>(
      verb, "--through", through, {{"rings", Through::rings}, {"hip", Through::hip}, {"hsa", Through::hsa}},
      "how the host submits: it fills its own rings (default), calls HIP, with the public costs of HIP on "
      "MI300X, or calls ROCr's hsa_amd_memory_async_batch_copy, whose costs are assumed");
}

void add_verbose(VerbOptions& verb, bool& verbose) {
  verb.flag(
      "--verbose", verbose,
      "also print where the machine is from, and the defaults that are used because nothing was said; JSON always has "
      "these");
}

std::string machine_text(const MachineDescription& m) {
  auto out = fmt::format("machine     {}{}\n", m.name, m.origin.file.empty() ? "" : ", from " + m.origin.file);
  for (const auto& d : defaults_of(m)) out += "default     " + d + "\n";
  return out;
}

Result<std::string, Diagnostic> read_node(const std::string& path, std::string_view command) {
  auto text = read_text(path);
  if (!text && text.error().hint.empty()) {
    auto error = std::move(text.error());
    error.hint = node_hint(path, command);
    return error;
  }
  return text;
}

std::optional<Cost> parameter_named(const std::string& option, const std::string& word) {
  const auto i = cost_named(word);
  if (i != kCosts) return static_cast<Cost>(i);
  std::vector<std::string_view> known;
  for (std::size_t k = 0; k < kCosts; ++k) known.push_back(name(static_cast<Cost>(k)));
  for (std::size_t k = 0; k < kPowers; ++k) known.push_back(name(static_cast<Power>(k)));
  complain(option + " " + word + ": there is no such parameter" + did_you_mean(word, known),
           "sdma simulate --show-machine lists them");
  return {};
}

std::optional<MachineDescription> load_machine(const MachineOptions& o) {
  const Doing reading("reading " + shown(o.path));
  auto m = machine_named(o.path, read_text);
  if (!m) return report(m.error()), std::nullopt;
  through(*m, o.through);
  for (const auto& [name, value] : o.changes) {
    char* end = nullptr;
    const auto v = std::strtod(value.c_str(), &end);
    const auto rate = link_rate(name) != nullptr;
    if (power_named(name) < kPowers) {
      if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
      complain("--parameter " + name + "=" + value + ": the machine cannot have this",
               "write a number from 0 to 1e9; sdma simulate --show-machine says which terms another one includes");
      return {};
    }
    const auto parameter = rate ? std::nullopt : parameter_named("--parameter", name);
    if (!rate && !parameter) return {};
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    const auto unit = rate ? "GB/s" : sdma::unit(*parameter);
    const auto links = rate && *end == 0 && v > 0;
    complain("--parameter " + name + "=" + value + ": " +
                 (links ? "the machine has no such links" : "'" + value + "' is not a valid value"),
             links                ? "sdma topology shows the links of a node"
             : unit == "fraction" ? "write a number above 0 and at most 1"
             : unit == "ratio"    ? "write a number above 0"
             : unit == "ns"       ? "write a number of ns from 0 to 1e12, without a unit"
                            : "write a number of " + std::string(unit) + " above 0 and at most 1e12, without a unit");
    return {};
  }
  return std::move(*m);
}

int exit_code(const MachineOptions& o) { return o.changes.empty() ? kInput : kUsage; }

std::function<void()> add_profile(VerbOptions& verb, Profile& profile) {
  add_choice<Profile>(
      verb, "--profile", profile,
      {{"conservative", Profile::conservative()},
       {"rocr", Profile::rocr()},
       {"strict", Profile::strict()},
       {"cuda", Profile::cuda()}},
      "ordering that a schedule may rely on: the rules of docs/ordering.md (default), the rules that ROCr relies on, "
      "strict queue order, or the order of CUDA streams");
  const auto assumed = std::make_shared<std::vector<std::string>>();
  const auto assume = [assumed](const std::string& given) -> std::string {
    if (Profile{}.set(given)) return assumed->push_back(given), "";
    const auto all = profile_options();
    return "'" + given + "' is not one of " + options_like(given) + did_you_mean(given, {all.begin(), all.end()});
  };
  verb.repeated("--assume", assume, "assume one more guarantee, such as fence=full; may be repeated")
      .type("OPTION=VALUE");
  return [assumed, &profile] {
    // The parser has already refused invalid assumptions.
    for (const auto& a : *assumed) (void)profile.set(a);
  };
}

Result<NameTable, Diagnostic> load_names(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return text.error();
  return parse_names(*text, shown(path));
}

void add_positions(VerbOptions& verb, std::optional<std::uint64_t>& rptr, std::optional<std::uint64_t>& wptr) {
  add_position(
      verb, "--rptr", rptr,
      "position that the engine has reached, in bytes, or in dwords with dw: 0x40, 16dw (default: what FILE says)");
  add_position(verb, "--wptr", wptr, "position that the producer has reached, written as --rptr");
}

void add_buffers(VerbOptions& verb, std::vector<FileAt>& buffers, const std::string& doc) {
  add_each(verb, "--ib", buffers, parse_file_at, "FILE@VA, such as ib.bin@0x7f0000001000", doc).type("FILE@VA");
}

Result<std::vector<IndirectBuffer>, Diagnostic> read_buffers(const std::vector<FileAt>& files) {
  std::vector<IndirectBuffer> out;
  for (const auto& f : files) {
    auto in = Input::open({.path = f.path});
    if (!in) return std::move(in.error());
    auto ring = in->ring();
    if (!ring) return std::move(ring.error());
    out.push_back({shown(f.path), f.va, std::move(ring->dwords)});
  }
  return out;
}

}  // namespace sdma::tool
