// SPDX-License-Identifier: MIT
// Schedules and collectives of sdma/client.h.
#include "collectives/run.hpp"
#include "handles.hpp"
#include "sdma/core/file.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/text.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <stdexcept>

using namespace sdma;
using client::done;
using client::made;
using client::refused;

/// Either has `run`, a collective, or `bound`, a schedule with one stream.
struct sdma_work {
  ~sdma_work() {
    for (const auto& s : signals) open->forget(s.va);
  }
  const Bound& what() const noexcept { return run ? run->bound() : *bound; }

  std::shared_ptr<client::Opened> open;
  std::optional<Bound> bound{};
  std::optional<collectives::Run> run{};
  std::vector<Signal> signals{};             ///< that its streams write and wait for
  std::vector<WaitCondition> completions{};  ///< of a round; the values are set when it is waited for
  std::vector<const Queue*> queues{};
  std::vector<GpuVa> words{};
  std::optional<StreamOrder> order{};
  bool tried = false, carried = false;
  std::vector<std::uint64_t> rounds{};             ///< how many each stream has been asked for
  std::vector<std::vector<StreamGraph>> graphs{};  ///< of each GPU's stream
  std::atomic<std::uint32_t> last = 0;             ///< the value of the last round that was enqueued; 0: there is none
  std::atomic<std::uint64_t> last_round = 0;       ///< of the stream or its graph, from 0
};

namespace {

const Schedule::Signal& signal_of(const Bound& b, std::size_t i) { return b.schedule().signals[i]; }

/// Binds as one of the device's ranks. Throws std::runtime_error if the session was used before.
class Meeting {
 public:
  explicit Meeting(client::Opened& o) {
    auto& r = o.ranks;
    if (r.ranks == 1) return;
    const auto folder = std::filesystem::path(r.session) / std::to_string(r.binds++);
    std::filesystem::create_directories(folder);
    if (exists(folder / ("rank" + std::to_string(r.rank))))
      throw std::runtime_error("session " + r.session + ": rank " + std::to_string(r.rank) +
                               " has been in it; give each run an empty folder");
    exchange_.emplace(folder.string(), r.rank);
    options.rank = r.rank;
    options.ranks = r.ranks;
    options.exchange = &*exchange_;
    options.exchange_limit = std::chrono::seconds(r.patience);
  }
  BindOptions options{};

 private:
  std::optional<FolderExchange> exchange_{};
};

/// Does a stream of this rank wait for the word? Other words may be rounds ahead.
bool concerns(sdma_work& w, GpuVa word) {
  if (w.open->ranks.ranks == 1 || !w.run) return true;
  for (std::uint32_t g = 0; g < w.run->plan().options.gpus; ++g) {
    const auto words = w.run->stream(g).done();
    if (w.what().owns(Place::gpu(g)) && std::find(words.begin(), words.end(), word) != words.end()) return true;
  }
  return false;
}

/// What is the same for both: queues, and the words with these indices.
void furnish(sdma_work& w, const std::vector<std::size_t>& go, const std::vector<std::size_t>& completions) {
  const auto& b = w.what();
  for (const auto i : go) w.signals.push_back(b.signal(i));
  const bool each = completions.size() == b.schedule().queues.size();
  for (std::size_t k = 0; k < completions.size(); ++k) {
    const auto& signal = b.signal(completions[k]);
    w.signals.push_back(signal);
    if (!concerns(w, signal.va)) continue;
    w.completions.push_back({.signal = signal, .func = Compare::eq});
    if (each && b.owns(k)) w.completions.back().ring = RingView(b.ring(k));
  }
  for (const auto& s : w.signals) w.open->know(s, &b);
  for (std::size_t q = 0; q < b.schedule().queues.size(); ++q)
    if (b.owns(q)) w.queues.push_back(&b.queue(q));
}

sdma_work* bind_schedule(sdma_device* d, std::string_view text, const std::string& name, ParseOptions parse,
                         const char* settings, sdma_memory* const* lent, std::size_t count) {
  for (auto& [param, value] : client::settings(settings)) parse.set.push_back({param, value});
  const auto schedule = parse_schedule(text, name, parse);
  if (!schedule) return refused(schedule.error());
  Meeting meeting(*d->open);
  for (std::size_t i = 0; i < count; ++i) {
    if (!lent || !lent[i]) return refused("sdma_bind", "memory " + std::to_string(i) + " of those lent is NULL");
    meeting.options.external.push_back({lent[i]->memory.va(), lent[i]->memory.host()});
  }
  auto w = std::make_unique<sdma_work>();
  w->open = d->open;
  auto bound = bind(*schedule, *d->open->device, meeting.options);
  if (!bound) return refused(bound.error());
  w->bound.emplace(std::move(*bound));
  std::vector<std::size_t> go, all_done;
  for (std::size_t i = 0; i < schedule->signals.size(); ++i) {
    const auto& s = signal_of(*w->bound, i);
    if (!s.place.is_host() || s.at) continue;
    if (s.name == "go") go.push_back(i);
    if (s.name.starts_with("done")) all_done.push_back(i);
  }
  furnish(*w, go, all_done);
  w->rounds.resize(1);
  if (go.empty() || all_done.empty()) return w.release();  // it can be bound and read, and not be enqueued
  for (const auto i : all_done) w->words.push_back(w->bound->signal(i).va);
  w->order.emplace(w->bound->signal(go.front()).va, w->words);
  return w.release();
}

sdma_work* bind_collective(sdma_device* d, const char* settings) {
  collectives::Options options{.prelaunch = collectives::Prelaunch::stream,
                               .completion = collectives::Completion::fence};
  options.gpus = static_cast<std::uint32_t>(d->open->device->topology().gpus.size());
  bool carried = false;
  for (const auto& [name, value] : client::settings(settings)) {
    if (name == "prelaunch" || name == "completion")
      return refused("sdma_bind_collective", "the setting '" + name + "' is that of streams here", "leave it out");
    if (name == "carried") {
      carried = value == "yes";
      if (!carried && value != "no") return refused("sdma_bind_collective", "carried is yes or no, not " + value);
      continue;
    }
    if (const auto why = collectives::set(options, name, value); !why.empty())
      return refused("sdma_bind_collective", why, "sdma plan --help lists the options");
  }
  auto plan = collectives::plan(options);
  if (!plan) return refused(plan.error());
  auto w = std::make_unique<sdma_work>();
  w->open = d->open;
  const Meeting meeting(*d->open);
  auto run = collectives::Run::prepare(*plan, *d->open->device, meeting.options);
  if (!run) return refused(run.error());
  w->run.emplace(std::move(*run));
  w->carried = carried;
  const auto indices = [&](const std::vector<GpuVa>& links) {
    std::vector<std::size_t> all;
    for (const auto va : links) all.push_back(find_symbol(plan->schedule, va)->index);
    return all;
  };
  furnish(*w, indices(plan->triggers), indices(plan->completions));
  w->rounds.resize(options.gpus);
  w->graphs.resize(options.gpus);
  return w.release();
}

/// The value of a stream's n-th round.
std::uint32_t value_of(std::uint64_t rounds) {
  return static_cast<std::uint32_t>((rounds - 1) % StreamOrder::kLastEager + 1);
}

int cannot_carry(const char* where) {
  return refused(where, "the work is bound with carried=yes, and the stream is not one of cuda or soft",
                 "make it with sdma_stream_of, or bind with carried=no");
}

/// What a wait for the last round of a collective that its streams carry waits for, on the GPUs of this rank.
std::vector<WaitCondition> carried_conditions(const sdma_work& w) {
  std::vector<WaitCondition> all;
  for (std::uint32_t g = 0; g < w.rounds.size(); ++g) {
    if (!w.what().owns(Place::gpu(g))) continue;
    for (const auto word : w.run->carried_words(g, w.last_round))
      if (const auto at = std::find_if(w.signals.begin(), w.signals.end(), [&](const auto& s) { return s.va == word; });
          at != w.signals.end())
        all.push_back({.signal = *at, .func = Compare::eq, .reference = w.last});
  }
  return all;
}

int enqueue(sdma_work& w, std::uint32_t gpu, const sdma_stream& stream) {
  const auto calls = w.carried ? client::carrying(stream) : client::calls_of(stream);
  if (w.carried && !calls.copy) return cannot_carry("sdma_enqueue");
  const auto deadline = client::within(client::kRoomSeconds);
  if (gpu >= w.rounds.size() || (w.run && !w.what().owns(Place::gpu(gpu))))
    return refused("sdma_enqueue", "there is no stream of gpu " + std::to_string(gpu) + " here");
  if (w.run) {
    const auto round = w.rounds[gpu]++;
    const auto value = value_of(w.rounds[gpu]);
    if (const auto r = w.run->enqueue(gpu, calls, deadline); !r) {
      if (auto which = w.what().lost(); !which.empty()) return client::lost("sdma_enqueue", std::move(which));
      return refused(r.error());
    }
    w.last = value;
    w.last_round = round;
    return SDMA_OK;
  }
  if (!w.order)
    return refused("sdma_enqueue", "the schedule has no signal host.go, or none whose name begins with host.done",
                   "see sdma_bind_text");
  if (!w.tried)
    if (const auto r = w.order->prepare(calls); !r) return refused("sdma_enqueue", r.error());
  w.tried = true;
  const auto value = w.order->next();
  if (const auto r = w.order->begin(calls, value); !r) return refused("sdma_enqueue", r.error());
  w.last = value;
  for (std::size_t q = 0; q < w.queues.size(); ++q) {
    w.bound->set_epoch(q, value - 1);
    if (const auto e = w.bound->submit(q, deadline); !e)
      return refused("sdma_enqueue", e.error(), *w.open, *w.queues[q]);
  }
  if (const auto r = w.order->end(calls, value); !r) return refused("sdma_enqueue", r.error());
  return SDMA_OK;
}

/// A graph of a GPU's stream, or an error that has been reported.
const StreamGraph* graph_of(const sdma_work* w, std::uint32_t gpu, std::uint32_t graph, const char* where) {
  if (w && gpu < w->graphs.size() && graph - 1 < w->graphs[gpu].size()) return &w->graphs[gpu][graph - 1];
  return refused(where, "the work is NULL, or its stream of gpu " + std::to_string(gpu) + " has no graph " +
                            std::to_string(graph));
}

}  // namespace

sdma_work* sdma_bind_text(sdma_device* d, const char* text, const char* settings, sdma_memory* const* lent,
                          std::size_t count) {
  return made([&]() -> sdma_work* {
    if (!d || !text) return refused("sdma_bind_text", "the device or the text is NULL");
    return bind_schedule(d, text, "text", {}, settings, lent, count);
  });
}
sdma_work* sdma_bind_file(sdma_device* d, const char* path, const char* settings, sdma_memory* const* lent,
                          std::size_t count) {
  return made([&]() -> sdma_work* {
    if (!d || !path) return refused("sdma_bind_file", "the device or the path is NULL");
    const auto text = read_file(path);
    if (!text) return refused(text.error());
    return bind_schedule(d, *text, path, {.read = files_beside(path)}, settings, lent, count);
  });
}
sdma_work* sdma_bind_collective(sdma_device* d, const char* settings) {
  return made([&]() -> sdma_work* {
    if (!d) return refused("sdma_bind_collective", "the device is NULL");
    return bind_collective(d, settings);
  });
}
int sdma_buffer(const sdma_work* w, const char* name, std::uint64_t* address, std::uint64_t* bytes, void** host) {
  return done([&]() -> int {
    if (!w || !name) return refused("sdma_buffer", "the work or the name is NULL");
    const auto& all = w->what().schedule().buffers;
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const auto& b) { return to_string(b.place) + "." + b.name == name; });
    if (at == all.end())
      return refused("sdma_buffer", std::string("there is no buffer '") + name + "'", "names are like gpu0.buf");
    const auto link = link_buffer(static_cast<std::size_t>(at - all.begin()));
    if (address) *address = w->what().address(link).value;
    if (bytes) *bytes = at->bytes;
    if (host) *host = w->what().bytes({link, at->bytes}).data();
    return SDMA_OK;
  });
}
int sdma_enqueue(sdma_work* w, std::uint32_t gpu, const sdma_stream* s) {
  return done([&]() -> int {
    if (!w || !s || !s->write || !s->hold) return refused("sdma_enqueue", "the work, the stream or a function is NULL");
    return enqueue(*w, gpu, *s);
  });
}
std::uint32_t sdma_graph(sdma_work* w, std::uint32_t gpu, std::uint32_t rounds) {
  std::uint32_t number = 0;
  (void)done([&]() -> int {
    if (!w || gpu >= w->graphs.size() || !w->what().owns(Place::gpu(gpu)))
      return refused("sdma_graph",
                     "the work is NULL, is not a collective, or has no stream of gpu " + std::to_string(gpu) + " here");
    if (w->rounds[gpu] == 0)
      return refused("sdma_graph", "the stream has not tried its words", "enqueue a round before the capture begins");
    const auto graph = w->run->graph(gpu, rounds);
    if (!graph) return refused(graph.error());
    w->graphs[gpu].push_back(*graph);
    number = static_cast<std::uint32_t>(w->graphs[gpu].size());
    return SDMA_OK;
  });
  return number;
}
int sdma_pass(sdma_work* w, std::uint32_t gpu, std::uint32_t graph, std::uint32_t round, const sdma_stream* s) {
  return done([&]() -> int {
    const auto* const g = graph_of(w, gpu, graph, "sdma_pass");
    if (!g) return SDMA_FAILED;
    if (!s || !s->write || !s->hold || round >= g->iterations)
      return refused("sdma_pass",
                     "the stream or a function is NULL, or the graph has no round " + std::to_string(round));
    const auto calls = w->carried ? client::carrying(*s) : client::calls_of(*s);
    if (w->carried && !calls.copy) return cannot_carry("sdma_pass");
    auto r = w->run->pass(gpu, calls, *g, round);
    if (r && round + 1 == g->iterations) r = w->run->close(gpu, calls, *g);
    if (r) return SDMA_OK;
    if (auto which = w->what().lost(); !which.empty()) return client::lost("sdma_pass", std::move(which));
    return refused(r.error());
  });
}
int sdma_replay(sdma_work* w, std::uint32_t gpu, std::uint32_t graph) {
  return done([&]() -> int {
    const auto* const g = graph_of(w, gpu, graph, "sdma_replay");
    if (!g) return SDMA_FAILED;
    if (const auto r = w->run->publish(gpu, *g, client::within(client::kRoomSeconds)); !r) return refused(r.error());
    const auto rounds = w->carried ? w->run->rounds_of(*g) : g->rounds();
    w->last = g->value(rounds - 1);
    w->last_round = rounds - 1;
    return SDMA_OK;
  });
}
int sdma_wait(sdma_work* w, double seconds) {
  return done([&]() -> int {
    if (!w) return refused("sdma_wait", "the work is NULL");
    if (w->last == 0) return SDMA_OK;
    if (w->carried) w->completions = carried_conditions(*w);
    for (auto& c : w->completions) c.reference = w->last;
    const auto r = client::reach(*w->open, w->completions, w->queues, client::within(seconds), &w->what());
    if (r != SDMA_OK) return r;  // what a stream waits for does not come: what it has stored would not, either
    const auto& device = *w->open->device;
    for (std::uint32_t g = 0; g < device.topology().gpus.size(); ++g)
      if (w->what().owns(Place::gpu(g))) (void)device.flush_host_writes(GpuId{g});
    return r;
  });
}
void sdma_unbind(sdma_work* w) { delete w; }
