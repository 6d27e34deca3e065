// sdma topology: a node's GPUs, engines and links, and which engine is for which pair.
#include "sdma/device/topology.hpp"

#include "output.hpp"
#include "verb.hpp"

namespace sdma::tool {
namespace {

struct Options {
  bool json = false;
  std::uint32_t gpus = 8;
};

int run(const Options& o) {
  const auto node = mi300x(o.gpus);
  if (!node) return report(node.error()), kUsage;
  Output out{"-"};
  out.text() = o.json ? to_json(*node) : to_table(*node);
  return out.close() ? kOk : out.exit_code();
}

}  // namespace

void add_topology(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.add_flag("--json", o->json, "as JSON, which programs read back: topology_from_json");
  verb.add_option("--gpus", o->gpus, "the first N GPUs of a node of eight MI300X")
      ->type_name("N")
      ->capture_default_str();
  verb.footer(
      "Examples:\n"
      "  sdma topology\n"
      "  sdma topology --gpus 4 --json");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
