// sdma check: what is wrong with a ring.
#include "input.hpp"
#include "output.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/stream/rules.hpp"
#include "verb.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <fstream>
#include <optional>

namespace sdma::tool {
namespace {

enum class Format { text, json };

struct Options {
  InputOptions input;
  Format format = Format::text;
  StreamCheckOptions check;
  bool kernel = false, rules = false;
};

std::string to_json_line(const Diagnostic& d) {
  const auto colon = d.where.rfind(':');
  nlohmann::ordered_json j{{"rule", d.rule}, {"severity", std::string(name(d.severity))}, {"where", d.where}};
  if (colon != std::string::npos && d.where.substr(colon + 1).starts_with("0x"))
    j["offset"] = std::stoull(d.where.substr(colon + 1), nullptr, 16);
  j["message"] = d.message;
  j["hint"] = d.hint;
  return j.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int list_rules() {
  Output out{"-"};
  for (const auto& r : stream_rules())
    out.text().append(r.id).append(": ").append(name(r.severity)).append(": ").append(r.text).append("\n");
  for (const auto& p : kPackets)
    for (const auto& r : p.rules)
      out.text().append(r.id).append(": error: ").append(p.name).append(": ").append(r.text).append("\n");
  return out.close() ? kOk : out.exit_code();
}

/// A schedule's text is checked here; what its queues do to each other is not.
std::optional<int> check_schedule(const Options& o) {
  if (o.input.path == "-" || o.input.form != Form::automatic) return {};
  // A ring may be large, and a look at its beginning says what it is not.
  std::ifstream file(o.input.path, std::ios::binary);
  std::string head(4096, '\0');
  head.resize(static_cast<std::size_t>(file.read(head.data(), static_cast<std::streamsize>(head.size())).gcount()));
  if (!is_schedule(head)) return {};
  const auto text = read_text(o.input.path);
  if (!text) return report(text.error()), kInput;
  const auto s = parse_schedule(*text, o.input.path);
  std::vector<Diagnostic> found;
  if (!s) found = s.error();
  else
    found.push_back({.severity = Severity::note,
                     .where = o.input.path,
                     .message =
                         "the text is right; races, deadlocks and missing waits are not looked for: that checker is "
                         "not built yet",
                     .hint = "sdma run --order=adversarial runs it as weakly ordered as hardware may be"});
  Output out{"-"};
  for (const auto& d : found)
    if (o.format == Format::json) out.text() += to_json_line(d);
    else report(d);
  if (!out.close()) return out.exit_code();
  // Who expects a finding has not got it.
  return !s || expects_finding(*s) ? kFindings : kOk;
}

int run(const Options& o) {
  if (o.rules) return list_rules();
  if (const auto code = check_schedule(o)) return *code;
  auto in = Input::open(o.input.path, o.input.form);
  if (!in) return report(in.error()), kInput;
  auto options = o.check;
  options.file = in->name();
  options.user_queue = !o.kernel;
  StreamChecker checker{options};
  Output out{"-"};
  std::size_t errors = 0, warnings = 0;
  auto done = for_each_piece(*in, [&](std::span<const std::uint32_t> dwords, bool last) {
    std::vector<Diagnostic> found;
    const auto used = checker.append(found, dwords, last);
    for (const auto& d : found) {
      errors += d.severity == Severity::error;
      warnings += d.severity == Severity::warning;
      if (o.format == Format::json) out.text() += to_json_line(d);
      else report(d);
    }
    return out.drain() ? used : dwords.size();
  });
  if (!out.close()) return out.exit_code();
  if (!done) return report(done.error()), kInput;
  return errors + warnings > 0 ? kFindings : kOk;
}

/// 4096, 0x1000, 4K, 1M or 2G, in 64 bits.
std::optional<std::uint64_t> number(std::string_view s) {
  int base = 10, shift = 0;
  if (s.starts_with("0x")) {
    s.remove_prefix(2);
    base = 16;
  } else if (const auto unit = s.empty() ? s.npos : std::string_view("KMG").find(s.back()); unit != s.npos) {
    shift = 10 * (static_cast<int>(unit) + 1);
    s.remove_suffix(1);
  }
  std::uint64_t n{};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n, base);
  if (error != std::errc{} || end != s.data() + s.size() || n > ~std::uint64_t{} >> shift) return {};
  return n << shift;
}

/// A number that is a multiple of `unit`; what is none is an error.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& value, unsigned unit, const std::string& doc) {
  const auto parse = [&value, name, unit](const CLI::results_t& given) {
    const auto n = number(given.back());
    if (!n)
      throw CLI::ValidationError(name, "'" + given.back() + "' is not a number: write 4096, 0x1000, 4K, 1M or 2G");
    if (*n % unit != 0) throw CLI::ValidationError(name, given.back() + " is no multiple of " + std::to_string(unit));
    return value = *n, true;
  };
  return app.add_option(name, parse, doc)->type_name("N");
}

}  // namespace

void add_check(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  add_input(verb, o->input);
  add_choice<Format>(verb, "--format", o->format, {{"text", Format::text}, {"json", Format::json}},
                     "text on standard error; an object a line on standard output");
  add_number(verb, "--ring-bytes", o->check.ring_bytes, 4,
             "size of the ring, to find packets across its end (64K, 1M)");
  add_number(verb, "--base", o->check.base, 4, "ring position of the first dword, in bytes");
  add_number(verb, "--most", o->check.most, 1, "findings a rule that are shown; 0: all")->default_str("20");
  verb.add_flag("--kernel", o->kernel, "a queue of the kernel: privileged packets are allowed");
  verb.add_flag("--rules", o->rules, "list the rules instead");
  verb.footer(
      "docs/rules.md has a section for each rule. Exit code 1: an error or a warning was found.\n"
      "Examples:\n"
      "  sdma check ring.bin\n"
      "  sdma check --ring-bytes=1M --base=0x3ff00 --input=hex dmesg.txt\n"
      "  sdma check --format=json ring.bin | jq -r .rule | sort | uniq -c");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
