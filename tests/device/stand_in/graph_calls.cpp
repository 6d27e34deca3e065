// SPDX-License-Identifier: MIT
// Capture of streams, and graphs: commands that are kept instead of enqueued, and enqueued again by each launch.
#include "calls.hpp"
#include "handles.hpp"

#include <map>
#include <mutex>

namespace stand_in {
namespace {

using abi::Graph;
using abi::GraphExec;

/// Graphs and what was made of them, by handle: a handle is a number that is not used again.
struct Graphs {
  std::mutex mutex{};
  std::uintptr_t last = 0;
  std::map<std::uintptr_t, std::shared_ptr<const Captured>> all{};

  template <class Handle> Handle add(std::shared_ptr<const Captured> c) {
    const std::lock_guard lock(mutex);
    all.emplace(++last, std::move(c));
    return reinterpret_cast<Handle>(last);
  }
  std::shared_ptr<const Captured> find(const void* handle) {
    const std::lock_guard lock(mutex);
    const auto it = all.find(reinterpret_cast<std::uintptr_t>(handle));
    return it == all.end() ? nullptr : it->second;
  }
  Status remove(const void* handle) {
    const std::lock_guard lock(mutex);
    return all.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1 ? kSuccess : kInvalidValue;
  }
};
Graphs& graphs() {
  static auto* const only = new Graphs;
  return *only;
}

Status begin_capture(abi::Stream handle, int mode) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (mode < 0 || mode > abi::kCaptureRelaxed) return kInvalidValue;
  return s->connection.begin_capture(*s);
}

Status end_capture(abi::Stream handle, Graph* out) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (!out) return kInvalidValue;
  *out = nullptr;
  std::shared_ptr<const Captured> captured;
  if (const auto code = s->connection.end_capture(*s, &captured)) return code;
  *out = graphs().add<Graph>(std::move(captured));
  return kSuccess;
}

Status instantiate(GraphExec* out, Graph g, unsigned long long flags) {
  auto captured = graphs().find(g);
  if (!out || !captured || flags != 0) return kInvalidValue;
  *out = graphs().add<GraphExec>(std::move(captured));
  return kSuccess;
}

/// One command of the stream.
Status launch_graph(GraphExec handle, abi::Stream stream) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(stream, &s)) return code;
  const auto captured = graphs().find(handle);
  if (!captured) return kInvalidValue;
  const auto all = [captured](Stream& here) -> Status {
    for (const auto& action : captured->actions) {
      if (const auto code = here.context.status()) return code;
      here.order.pause_before_command();
      if (const auto code = action(here)) return code;
    }
    return kSuccess;
  };
  return s->connection.enqueue(s, all, captured->waits);
}

Status destroy_graph(Graph g) { return graphs().remove(g); }
Status destroy_exec(GraphExec g) { return graphs().remove(g); }

}  // namespace

std::span<const Entry> graph_calls() {
  static const Entry all[] = {
      {"cuStreamBeginCapture", function<"cuStreamBeginCapture", begin_capture>()},
      {"cuStreamEndCapture", function<"cuStreamEndCapture", end_capture>()},
      {"cuGraphInstantiateWithFlags", function<"cuGraphInstantiateWithFlags", instantiate>()},
      {"cuGraphLaunch", function<"cuGraphLaunch", launch_graph>()},
      {"cuGraphDestroy", function<"cuGraphDestroy", destroy_graph>()},
      {"cuGraphExecDestroy", function<"cuGraphExecDestroy", destroy_exec>()},
  };
  return all;
}

}  // namespace stand_in
