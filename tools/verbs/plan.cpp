// SPDX-License-Identifier: MIT
// sdma plan: a collective's schedule as text, to read, run, check, sweep or compare.
#include "collectives/collectives.hpp"
#include "collectives/source.hpp"
#include "core/nearest.hpp"
#include "core/words.hpp"
#include "input.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::tool {
namespace {

struct PlanArguments {
  std::string collective, matrix;
  std::optional<NodeSizes> per_node;
  std::vector<std::pair<std::string, std::string>> members;  ///< of collectives::Options, or params of a text, as given
  bool flat = false, json = false;
};

/// A schedule, and what is worth saying about it.
struct Planned {
  std::string text;
  std::vector<std::string> notes{};
};

int usage_error(const std::string& why) { return complain(why, "sdma plan --help"); }

int print_plan(const PlanArguments& o, const Planned& p) {
  if (o.json)
    return write_text("-", json::document({{"collective", o.collective}, {"notes", p.notes}, {"schedule", p.text}}));
  for (const auto& note : p.notes) report({.severity = Severity::note, .where = o.collective, .message = note});
  return write_text("-", p.text);
}

/// A text whose params are all that can be set: over nodes, or a reduction.
int plan_text(const PlanArguments& o, collectives::Source text) {
  if (o.per_node) set_param(text, "per_node", "[" + to_string(*o.per_node) + "]");
  auto members = o.members;
  if (!o.matrix.empty()) members.emplace_back("matrix", o.matrix);
  for (const auto& [member, value] : members)
    if (!set_param(text, member == "gpus" ? "N" : member, value))
      return usage_error(o.collective + " has no option " + member);
  const auto s = parse_schedule(text.text, text.name, {.set = text.set});
  if (!s) return report(s.error().front()), kUsage;
  Planned p{.text = o.flat ? to_text(*s) : with_params(text)};
  if (!o.per_node) p.notes = {"it uses compute units: a kernel on each GPU adds"};
  return print_plan(o, p);
}

/// The options of a plan: names, the member of collectives::Options or the param that they set, values, a sentence, and
/// the collectives that have it, if not all do.
struct PlanOption {
  const char *names, *member, *type, *doc;
  std::string_view only{};
};
constexpr PlanOption kPlanOptions[] = {
    {"-b,--bytes", "bytes", "SIZE", "size of the collective (default: 1M); K, M and G are powers of 1024"},
    {"-g,--gpus,--ngpus", "gpus", "N", "number of GPUs, 2 to 64 (default: 8)"},
    {"--variant", "variant", "NAME", ""},  // its sentence lists the variants
    {"-r,--root", "root", "N", "the GPU that has or gets all data (default: 0)", "broadcast, scatter and gather"},
    {"--prelaunch", "prelaunch", "off|shared|per_group|stream", "words that release prelaunched groups (default: off)"},
    {"--completion", "completion", "atomic|fence|two_fences", "how each group says that it is done (default: atomic)"},
    {"--epochs", "epochs", "N", "rounds of the host thread (default: 1)"},
    {"--in_place", "in_place", "yes|no", "the result replaces the input", "all_to_all"},
    {"--own_part", "own_part", "yes|no", "also copy the part that a GPU sends to itself", "all_to_all and alltoallv"},
    {"--peers_per_engine", "peers_per_engine", "N", "of b2b: peers per group (default: all peers of a GPU)"},
    {"--engines", "engines", "N,N..", "engines of the groups of a GPU, in turn (default: the recommended ones)"},
    {"--granule", "granule", "SIZE", "parts are rounded up to multiples of it (default: 64)"},
    {"--alignment", "alignment", "SIZE", "of each buffer's address, a power of two (default: 4K)"},
    {"--sizes", "sizes", "SIZE,SIZE..", "what each GPU sends to each GPU, row by row", "alltoallv"},
    {"--offsets", "offsets", "SIZE,SIZE..", "where the data of each GPU begins in its buffers, in turn (default: 0)"},
    {"--packet_bytes", "packet_bytes", "SIZE", "most bytes of a packet, a multiple of 64"},
    {"--ring_bytes", "ring_bytes", "SIZE", "size of the ring of each queue (default: as needed)"},
    {"--turns", "turns", "1|2", "room for a second one, for streams that copy by themselves", "all_gather"},
    {"--type", "type", "f32|bf16|i32", "type of an element", "reduce_scatter and all_reduce"},
    {"--share", "share", "N", "percent of the compute units that each kernel keeps busy",
     "reduce_scatter and all_reduce"},
    {"--algorithm", "algorithm", "hierarchical|flat|ring", "over nodes: how bytes go (default: hierarchical)"},
    {"--pieces", "pieces", "N", "over nodes: pieces of each message"}};

std::string_view collectives_of(std::string_view member) {
  for (const auto& m : kPlanOptions)
    if (m.member == member) return m.only;
  return {};
}

int no_such_collective(const std::string& word) {
  const std::vector<std::string_view> all{"all_gather", "all_to_all", "alltoallv",      "broadcast",
                                          "scatter",    "gather",     "reduce_scatter", "all_reduce"};
  return usage_error(fmt::format("'{}' is not one of {}{}", word, fmt::join(all, "|"), did_you_mean(word, all)));
}

int plan_verb(const PlanArguments& o) {
  if (o.collective.empty()) return usage_error("no collective given");
  if (auto text = o.per_node ? collectives::over_nodes(o.collective) : collectives::reduction(o.collective))
    return plan_text(o, *std::move(text));
  if (o.per_node) return usage_error("over nodes there are all_gather, all_to_all and broadcast");
  collectives::Options options{.bytes = 1 << 20};
  // A matrix says how many GPUs and bytes there are, which other options may say, too.
  if (!o.matrix.empty()) {
    const auto text = read_text(o.matrix);
    if (!text) return report(text.error()), kInput;
    if (const auto wrong = set_matrix(options, *text); !wrong.empty())
      return report({.where = "--matrix " + o.matrix, .message = wrong, .hint = std::string(collectives::kMatrixForm)}),
             kInput;
  }
  if (const auto wrong = set(options, "collective", o.collective); !wrong.empty())
    return no_such_collective(o.collective);
  for (const auto& [member, value] : o.members)
    if (const auto only = collectives_of(member); !only.empty() && !detail::has_word(only, o.collective))
      return usage_error(fmt::format("{} has no option {}, which is for {}", o.collective, member, only));
  for (const auto& [member, value] : o.members)
    if (const auto wrong = set(options, member, value); !wrong.empty()) return usage_error(wrong);
  const auto p = collectives::plan(options);
  if (!p) return report(p.error()), kUsage;
  options.variant = p->options.variant;
  return print_plan(o, {o.flat ? to_text(p->schedule) : with_params(collectives::source_of(options)), p->notes});
}

}  // namespace

void add_plan(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<PlanArguments>();
  verb.value(
          "COLLECTIVE,--collective", o->collective,
          "all_gather, all_to_all, alltoallv, broadcast, scatter or gather; or reduce_scatter or all_reduce, in which "
          "kernels add: they use compute units")
      .type("NAME");
  for (const auto& m : kPlanOptions) {
    // A type such as atomic|fence lists the values.
    const std::string_view type = m.type;
    const bool listed = type.find('|') != type.npos;
    const auto take = [o, &m, type, listed](const std::string& value) -> std::string {
      if (listed && fmt::format("|{}|", type).find("|" + value + "|") == std::string::npos)
        return "'" + value + "' is not one of " + std::string(type);
      return o->members.emplace_back(m.member, value), "";
    };
    const auto doc = *m.doc != 0
                         ? std::string(m.doc)
                         : "way to copy: one of " + collectives::variant_names(", ") +
                               " (default: auto), with +pl: prelaunched; of reduce_scatter and all_reduce, one of "
                               "ring, halving, swing";
    verb.parsed(m.names, take, m.only.empty() ? doc : fmt::format("of {}: {}", m.only, doc)).type(m.type);
  }
  verb.repeated(
          "--set",
          [o](const std::string& given) -> std::string {
            const auto equals = given.find('=');
            if (equals == given.npos) return "'" + given + "' is not NAME=VALUE";
            return o->members.emplace_back(given.substr(0, equals), given.substr(equals + 1)), "";
          },
          "the same as --NAME=VALUE; may be repeated")
      .type("NAME=VALUE");
  verb.value("--matrix", o->matrix,
             "of alltoallv: row i has the bytes that GPU i sends to each GPU; --bytes scales them")
      .type("FILE.csv");
  add_parsed(verb, "--ranks-per-node", o->per_node, parse_node_sizes, "a list of numbers from 1 to 64: write 4 or 3,2",
             "all_gather, all_to_all or broadcast over nodes of N GPUs: engines copy inside a node, the network sends "
             "between nodes")
      .type("N|N,N..");
  verb.flag("--flat", o->flat, "without params and loops: one line per packet");
  verb.flag("--json", o->json, "print an object with the schedule and its notes");
  verb.exits({{kOk, "printed"}, {kInput, "an error of the input or output"}});
  verb.manual("docs/collectives.md");
  verb.footer(
      "collectives/options.hpp explains each option. Notes about fallbacks of the variant, and about compute units, go to\n"
      "standard error.\n"
      "Examples:\n"
      "  sdma plan all_gather --variant=b2b+pl -g 4 -b 64K > ag.sdma\n"
      "  sdma run ag.sdma\n"
      "  sdma simulate --sweep bytes=1K..1G*4 ag.sdma\n"
      "  sdma perf --variant=all,ag.sdma");
  action = [o] { return plan_verb(*o); };
}

}  // namespace sdma::tool
