#include "sdma/device/topology.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

namespace sdma {
inline namespace v0 {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

std::string name_of(End e) { return fmt::format("{}{}", e.kind == End::Kind::cpu ? "cpu" : "gpu", e.index); }

/// One line. Replaces invalid UTF-8, because the firmware supplies the name of a GPU.
std::string line(const Ordered& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

Ordered json_of(const Link& l) {
  auto engines = Ordered::array();
  for (auto mask = l.engine_mask; mask != 0; mask &= mask - 1) engines.push_back(std::countr_zero(mask));
  return {{"from", name_of(l.from)}, {"to", name_of(l.to)},        {"type", name(l.type)},
          {"mb_per_s", l.mb_per_s},  {"atomics_64", l.atomics_64}, {"engines", std::move(engines)}};
}

void append_lines(std::string& out, std::string_view key, const std::vector<Ordered>& objects) {
  out += fmt::format(",\n  \"{}\": [", key);
  for (std::size_t i = 0; i < objects.size(); ++i)
    out += fmt::format("{}\n    {}", i == 0 ? "" : ",", line(objects[i]));
  out += objects.empty() ? "]" : "\n  ]";
}

/// Reads objects key by key and keeps the first error.
class Loader {
 public:
  explicit Loader(std::string_view file) : file_(file) {}

  bool failed() const { return failed_; }
  Diagnostic take() { return std::move(error_); }
  void complain(const std::string& where, std::string message, std::string hint = {}) {
    if (!std::exchange(failed_, true))
      error_ = {.where = where.empty() ? file_ : file_ + ": " + where,
                .message = std::move(message),
                .hint = std::move(hint)};
  }

  /// Is `j` an object that has no keys other than these?
  bool object(const Json& j, const std::string& where, std::initializer_list<std::string_view> keys) {
    if (!j.is_object()) {
      complain(where, "is not a JSON object");
      return false;
    }
    for (const auto& [key, value] : j.items()) {
      bool known = false;
      for (const auto k : keys) known = known || k == key;
      if (!known)
        complain(where, fmt::format("has the unknown key \"{}\"", key),
                 fmt::format("known keys: {}", fmt::join(keys, ", ")));
    }
    return !failed_;
  }

  template <class T> void number(const Json& j, const char* key, const std::string& where, T& to) {
    const auto at = j.find(key);
    if (at == j.end()) return complain(where, fmt::format("has no \"{}\"", key));
    if (!at->is_number_unsigned() || at->get<std::uint64_t>() > std::numeric_limits<T>::max())
      return complain(where, fmt::format("\"{}\" is not an integer from 0 to {}", key, std::numeric_limits<T>::max()));
    to = at->get<T>();
  }
  void string(const Json& j, const char* key, const std::string& where, std::string& to) {
    const auto at = j.find(key);
    if (at == j.end()) return;  // optional: names are for people
    if (!at->is_string()) return complain(where, fmt::format("\"{}\" is not a string", key));
    to = at->get<std::string>();
  }
  template <class F> void each(const Json& j, const char* key, F f) {
    const auto at = j.find(key);
    if (at == j.end() || !at->is_array()) return complain("", fmt::format("has no array \"{}\"", key));
    for (std::size_t i = 0; i < at->size() && !failed_; ++i) f((*at)[i], fmt::format("{}[{}]", key, i));
  }

  void end(const Json& j, const char* key, const std::string& where, const Topology& t, End& to) {
    std::string text;
    string(j, key, where, text);
    const bool is_cpu = text.starts_with("cpu");
    std::uint32_t index = 0;
    const char *first = text.data() + (text.size() < 3 ? text.size() : 3), *last = text.data() + text.size();
    const auto [stop, error] = std::from_chars(first, last, index);
    const bool well_formed = (is_cpu || text.starts_with("gpu")) && error == std::errc{} && stop == last;
    if (!well_formed || index >= (is_cpu ? t.cpus.size() : t.gpus.size()))
      return complain(where, fmt::format("\"{}\" is \"{}\", which is neither a CPU nor a GPU of this node", key, text),
                      "write cpu0, gpu0, ...");
    to = is_cpu ? End::cpu(index) : End::gpu(index);
  }

  void engines(const Json& j, const std::string& where, const Topology& t, Link& l) {
    const auto at = j.find("engines");
    if (at == j.end() || !at->is_array()) return complain(where, "has no array \"engines\"");
    const auto owner = l.from.kind == End::Kind::gpu ? l.from : l.to;
    const auto count = owner.kind == End::Kind::gpu ? t.gpus[owner.index].engines() : 0;
    for (const auto& e : *at) {
      if (!e.is_number_unsigned() || e.get<std::uint64_t>() >= count)
        return complain(where,
                        fmt::format("engine {} is not one of the {} engines of {}", e.dump(), count, name_of(owner)));
      l.engine_mask |= std::uint64_t{1} << e.get<unsigned>();
    }
  }

 private:
  std::string file_;
  Diagnostic error_;
  bool failed_ = false;
};

void load_gpu(Loader& in, const Json& j, const std::string& where, Gpu& g) {
  if (!in.object(j, where, {"name", "gfx", "memory_bytes", "host_engines", "xgmi_engines", "queues_per_engine"}))
    return;
  in.string(j, "name", where, g.name);
  in.number(j, "gfx", where, g.gfx);
  in.number(j, "memory_bytes", where, g.memory_bytes);
  in.number(j, "host_engines", where, g.host_engines);
  in.number(j, "xgmi_engines", where, g.xgmi_engines);
  in.number(j, "queues_per_engine", where, g.queues_per_engine);
  if (std::uint64_t{g.host_engines} + g.xgmi_engines > 64) in.complain(where, "has more than 64 engines");
  if (g.queues_per_engine > 1024) in.complain(where, "has more than 1024 queues per engine");
}

void load_link(Loader& in, const Json& j, const std::string& where, const Topology& t, Link& l) {
  if (!in.object(j, where, {"from", "to", "type", "mb_per_s", "atomics_64", "engines"})) return;
  in.end(j, "from", where, t, l.from);
  in.end(j, "to", where, t, l.to);
  std::string type;
  in.string(j, "type", where, type);
  if (type == "pcie") l.type = LinkType::pcie;
  else if (type == "xgmi") l.type = LinkType::xgmi;
  else if (type != "other") in.complain(where, fmt::format("\"type\" is \"{}\"", type), "write pcie, xgmi or other");
  in.number(j, "mb_per_s", where, l.mb_per_s);
  const auto atomics = j.find("atomics_64");
  if (atomics == j.end() || !atomics->is_boolean()) in.complain(where, "\"atomics_64\" is neither true nor false");
  else l.atomics_64 = atomics->get<bool>();
  if (!in.failed()) in.engines(j, where, t, l);
}

}  // namespace

std::string to_json(const Topology& t) {
  std::vector<Ordered> cpus, gpus, links;
  for (const auto& c : t.cpus) cpus.push_back({{"name", c.name}, {"memory_bytes", c.memory_bytes}});
  for (const auto& g : t.gpus)
    gpus.push_back({{"name", g.name},
                    {"gfx", g.gfx},
                    {"memory_bytes", g.memory_bytes},
                    {"host_engines", g.host_engines},
                    {"xgmi_engines", g.xgmi_engines},
                    {"queues_per_engine", g.queues_per_engine}});
  for (const auto& l : t.links) links.push_back(json_of(l));
  std::string out = "{\n  \"name\": " + line(t.name);
  append_lines(out, "cpus", cpus);
  append_lines(out, "gpus", gpus);
  append_lines(out, "links", links);
  return out + "\n}\n";
}

Result<Topology, Diagnostic> topology_from_json(std::string_view text, std::string_view file) {
  Loader in{file};
  const auto j = Json::parse(text.begin(), text.end(), nullptr, false);
  Topology t;
  if (j.is_discarded()) in.complain("", "is not JSON", "`sdma topology --json` prints an example");
  else if (in.object(j, "", {"name", "cpus", "gpus", "links"})) {
    in.string(j, "name", "", t.name);
    in.each(j, "cpus", [&](const Json& e, const std::string& where) {
      if (!in.object(e, where, {"name", "memory_bytes"})) return;
      in.string(e, "name", where, t.cpus.emplace_back().name);
      in.number(e, "memory_bytes", where, t.cpus.back().memory_bytes);
    });
    in.each(j, "gpus", [&](const Json& e, const std::string& where) { load_gpu(in, e, where, t.gpus.emplace_back()); });
    if (!in.failed())
      in.each(j, "links",
              [&](const Json& e, const std::string& where) { load_link(in, e, where, t, t.links.emplace_back()); });
  }
  if (in.failed()) return in.take();
  return t;
}

}  // namespace v0
}  // namespace sdma
