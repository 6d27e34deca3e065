// SPDX-License-Identifier: MIT
#pragma once
// A running simulation: events, host threads and kernels, engines and their queues, and the cause of each step.
// Internal; simulate.hpp describes the model.
//
//   World world{schedule, machine, options};
//   auto result = world.run();
//   auto other = world.again(slower);                   // the same on a machine with other costs: most is prepared
//
// Events are handled in order of time, and at the same time in the order in which they were created. Each step that
// takes time adds a Node with its end and the Node that it waited for; the critical path leads back from the last
// Node (path.hpp).
//   threads.hpp  host threads and kernels    engines.hpp  front ends, windows, flows    queues.hpp  packets and words
//   links.hpp    links, and unknown rates      activity.hpp what costs energy
#include "../core/budget.hpp"
#include "../engine/front.hpp"
#include "../schedule/contents.hpp"
#include "../schedule/link.hpp"
#include "../schedule/rounds.hpp"
#include "../schedule/samples.hpp"
#include "ends.hpp"
#include "lanes.hpp"
#include "link_memory.hpp"
#include "network.hpp"
#include "pattern.hpp"
#include "sdma/queue/ring.hpp"

#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

namespace sdma { inline namespace v0_3 { namespace detail {

/// As many machines as one run is of, beside the first.
inline constexpr std::size_t kLanes = 32;

/// The kind of a step.
enum class What : std::uint8_t {
  begin,
  builds,
  rings,
  sets,
  looks,
  computes,
  accesses,
  releases_kernel,
  fetches,
  polls,
  reads,
  front_end,
  room,
  moves,
  lands,
  releases,
  atomics,
};

/// What the value of a parameter says: when something happens; if it is 0 or not, what; or what in any case.
enum class CostUse : std::uint8_t { times, switches, decides };

/// A step that ended at `t`, and began at the end of `cause`.
template <class Time> struct Node {
  Time t{};
  std::uint32_t cause{}, where{};  ///< where: into World::names_
  std::uint32_t queue = ~0u;       ///< its queue, if it has one
  What what{};
  Phase phase{};
  std::uint64_t count{};  ///< packets, bytes
};

template <class Time> class World {
 public:
  /// What each parameter is on each of the machines.
  using Costs = std::array<Time, kCosts>;
  static Costs costs_of(const MachineDescription&) noexcept;

  World(const Schedule&, const MachineDescription&, const SimulateOptions&);
  ~World();
  Result<Simulation, std::vector<Diagnostic>> run();
  /// The run with other costs. Requires that `run` could begin, and options without a trace and contents.
  Result<Simulation, std::vector<Diagnostic>> again(const Costs&);
  /// The result shall have times, and no texts: neither the path nor what was busy.
  void times_alone() noexcept { times_alone_ = true; }
  bool can_begin();
  /// Has the run ended because bytes cross a link whose rate is unknown?
  bool lacks_rate() const noexcept { return lacks_rate_; }
  /// Has SimulateOptions::stop ended it?
  bool stopped() const noexcept { return stopped_; }
  /// Of each parameter, the least value above which the run would have been the same: infinite if any change matters.
  using Needs = std::array<double, kCosts>;
  Needs needs() const;
  /// Of each parameter. What happens is the same in all lanes.
  using Uses = std::array<CostUse, kCosts>;
  const Uses& uses() const noexcept { return uses_; }
  /// Of the last round: its time, and its phases.
  struct Times {
    Time ns{};
    std::array<Time, kPhases> phase_ns{};
    Time strayed{};  ///< by how much a lane would have had another order: Network::strayed
  };
  const Times& times() const noexcept { return times_; }

 private:
  enum class Event : std::uint8_t { thread, computed, store, doorbell, front, look, decide, moved, landed, release };
  struct Scheduled {
    Time t{};
    std::uint64_t number{};
    Event event{};
    std::uint32_t id{}, node{};
    std::uint64_t argument{};
    bool operator<(const Scheduled& o) const noexcept { return lead(t) != lead(o.t) ? t > o.t : number > o.number; }
  };

  /// Actions of a host or kernel block, or of a repeat in it.
  struct Frame {
    const std::vector<Schedule::Action>* actions{};
    std::size_t next{};
    std::uint64_t round{}, rounds{};
  };
  /// What a run changes in a thread.
  struct ThreadProgress {
    std::uint32_t node{};
    std::vector<Frame> frames{};
    std::size_t queue{}, piece{};  ///< position in the current submit
    bool waits{}, done{}, blocked{};
    std::size_t signal{};  ///< the signal that it waits for
    Compare func{};
    std::uint64_t reference{};
    Samples samples{};
    double busy_ns{};
    Time free{};           ///< when it has last gone on, or has begun to wait
    std::uint32_t flow{};  ///< of the bytes of its compute, or of its time if there are none
    double since{};        ///< the start of that flow
    bool works{};          ///< that flow has not ended
  };
  struct Thread : ThreadProgress {
    std::string name{};
    Place place{};  ///< a kernel's GPU
    std::uint32_t where{};
    const std::vector<Schedule::Action>* actions{};
    std::uint32_t pace{};          ///< a kernel's resource of its own: the ns that it computes alone
    const Schedule::Kernel* of{};  ///< a kernel
    trace::LaneId lane{};
    bool kernel() const noexcept { return of != nullptr; }
    /// Of the compute units of a kernel's GPU, while it computes.
    double share() const noexcept { return of->share / 100.0; }
  };
  enum class State : std::uint8_t { idle, front, room, drain, look, waits };
  /// What a run changes in a queue.
  struct Progress {
    std::uint64_t epoch = 0;
    std::uint64_t head_position = 0;  ///< of the last submit, in the ring
    State state = State::idle;
    bool occupies = false;              ///< its fence or atomic has been sent, and occupies the front end
    std::uint64_t rung = 0;             ///< the last doorbell that the engine has seen
    std::deque<std::uint64_t> later{};  ///< where the work of doorbells begins that arrived while it had work
    std::uint32_t in_flight = 0, node = 0, landed_node = 0;
    std::vector<std::uint32_t> blocked{};  ///< threads that wait for room in the ring, or for rptr
    std::deque<Current> releases{};        ///< in flight: they land in this order
    Time last_release{};
    // The latest so far: of the next packet, its landings, the packets that were read, its polls of a word.
    Time ready{}, landed{}, read{}, looked{};
    std::deque<std::pair<std::uint64_t, Time>> doorbells{};  ///< up to where, and when, while packets need them
    std::uint64_t arrow = 0;
  };
  struct Program : Progress {
    const Schedule::Queue* source{};
    std::string name{};
    std::uint32_t gpu{}, engine{};
    Linked linked{};
    std::span<std::uint32_t> dwords{};  ///< of its ring
    alignas(64) std::uint64_t rptr = 0;
    alignas(64) std::uint64_t wptr = 0;
    std::optional<Ring<>> ring{};
    std::optional<FrontEnd> front{};
    GpuVa head{};  ///< the word that its first packet polls, if it is a poll
    trace::LaneId lane{};
    RingMemory ring_memory() noexcept {
      return {.dwords = dwords, .rptr = &rptr, .wptr = &wptr, .caching = Caching::write_back};
    }
  };
  /// To a signal, by a thread.
  struct Store {
    std::size_t signal{};
    std::uint64_t value{};
    bool add{};
  };
  static constexpr std::uint32_t kNoPeer = ~0u;
  struct Flight {
    std::uint32_t queue{}, node{}, flow{};
    std::uint64_t bytes{}, number{}, position{};
    double need{};
    Time extra_ns{}, entered{};    ///< entered: when it asked for room, then when it got it
    std::uint32_t peer = kNoPeer;  ///< the place with which it exchanges bytes, if it is one
    std::vector<typename Network<Time>::Use> uses{};
    Fetched packet{};
    bool executes{};
    bool completes{};  ///< it carries no bytes, but the next of the releases
    std::vector<trace::LaneId> lanes{};
  };
  /// What a run changes in an engine.
  struct EngineProgress {
    bool front_busy = false;
    std::deque<std::uint32_t> wants{};    ///< queues that wait for the front end
    std::vector<std::uint32_t> held{};    ///< queues whose next copy waits for one to the same peer to land
    std::vector<std::uint32_t> toward{};  ///< flights to each place
    std::deque<std::uint32_t> room{};     ///< flights that wait for room in the window
    std::deque<std::uint32_t> turn{};     ///< flights that have room; the first one requests its bytes
    double used = 0;                      ///< bytes of the window
    EngineState state{};
    InTurn<Time> front{}, bytes{};  ///< its front end; what moves the bytes of its flights
    std::uint32_t open = 0;
    double since = 0, busy_ns = 0;
  };
  struct Engine : EngineProgress {
    std::uint32_t gpu{}, id{}, resource{}, where{};
    bool network = false;  ///< no engine: it keeps sending, and completions follow the bytes
    std::uint32_t link{};  ///< of the network
  };

  // world.cpp
  void prepare();
  void restart(const Costs&);
  Result<Simulation, std::vector<Diagnostic>> play();
  std::uint32_t resource(Busy::Kind, std::string name, Cost, double times = 1);

  // links.hpp
  void links();
  /// Reports that no link leads there, if none does.
  bool reaches(Place from, Place to, const std::string& where);
  /// The resource of a link that bytes cross. Reports a link that does not exist, or whose rate is unknown.
  std::optional<std::uint32_t> crossed(Place from, Place to, const std::string& where);
  void queues();
  void queue(std::size_t, std::span<std::uint32_t> ring, std::span<std::uint32_t> copy);
  std::optional<std::uint32_t> engine_of(const Schedule::Queue&, const std::string& where);
  std::optional<std::uint32_t> network_of(const Schedule::Queue&, const std::string& where);
  void handle(const Scheduled&);
  Scheduled next();
  void stuck();
  void expectations(Simulation&);
  void too_fast(const Thread&, const std::vector<Schedule::Action>&, Simulation&) const;
  void find(std::string where, std::string message, std::string hint = "");
  /// Takes steps from the budget. If they are too many, reports that
  /// this thread, or else the first that has not ended, goes on.
  bool spend(std::uint64_t steps, const Thread* = nullptr);
  /// Asks SimulateOptions::stop now and then. True: the simulation ends here, which is reported.
  bool stops();
  /// "host main, line 12": the thread, and the action that it performs.
  std::string where(const Thread&) const;
  /// What the machine says; `cost` also notes that the run depends on it.
  const Time& value(Cost c) const noexcept { return costs_[static_cast<std::size_t>(c)]; }
  const Time& cost(Cost c) const noexcept {
    needs_[static_cast<std::size_t>(c)] = std::numeric_limits<double>::infinity();
    return value(c);
  }
  /// The same of a cost that decides what happens, and not only when; and of one that does if it is 0.
  double decides(Cost c) const noexcept {
    uses_[static_cast<std::size_t>(c)] = CostUse::decides;
    return lead(cost(c));
  }
  bool some(Cost c) const noexcept {
    uses_[static_cast<std::size_t>(c)] = CostUse::switches;
    return lead(cost(c)) > 0;
  }
  double window() const noexcept {
    uses_[static_cast<std::size_t>(Cost::engine_window)] = CostUse::decides;
    return lead(value(Cost::engine_window));
  }
  /// This moment, as of something that also had to wait until `others`.
  Time after(const Time& others) const noexcept { return led(higher(now_, others), lead(now_)); }
  /// The latest change of a word so far, which only lanes need.
  Time changed(GpuVa word) const {
    if constexpr (std::is_same_v<Time, double>) return 0;
    const auto known = changed_.find(word.value / 8);
    return known == changed_.end() ? Time{} : known->second;
  }
  void needs(Cost c, double least) noexcept {
    auto& n = needs_[static_cast<std::size_t>(c)];
    n = std::max(n, least);
  }
  Time flight(std::uint32_t gpu, Place to) const noexcept;
  Time flight(const Thread&, std::size_t signal) const noexcept;
  std::uint32_t named(std::string);
  std::uint32_t node(const Time& t, std::uint32_t cause, std::uint32_t where, What, Phase, std::uint32_t queue = ~0u,
                     std::uint64_t count = 0);
  void at(const Time& t, Event, std::uint32_t id, std::uint32_t node = 0, std::uint64_t argument = 0);
  std::uint64_t ns() const noexcept { return static_cast<std::uint64_t>(lead(now_) + 0.5); }
  static std::uint64_t ticks(void* self) noexcept;
  trace::LaneId lane(const Node<Time>&) const noexcept;

  // threads.hpp
  void step(std::uint32_t thread);
  bool perform(Thread&, std::uint32_t id);
  void compute(Thread&, std::uint32_t id, const Time& ns, What, Phase);
  void works(Thread&, std::uint32_t id, const Time& ns, const std::map<std::uint32_t, Time>& bytes,
             const Time& weight = 1.0);
  void share_units(Place gpu);
  void add(Thread&, std::uint32_t id, const Schedule::Action&);
  void computed(std::uint32_t id);
  void remember(const std::vector<Schedule::Action>&);
  std::span<std::byte> bytes(const Schedule::Range&);
  template <class Expects> std::span<const std::byte> expected(const Expects&, std::vector<std::byte>& sum);
  void compare(const Thread&, const Schedule::Action&);
  void access(Thread&, std::uint32_t id, const Schedule::Action&, std::uint64_t round);
  Time fetch_flights(const Thread&, const Program&) const noexcept;
  Time release(const Thread&) const noexcept;
  Time acquire(const Thread&) const noexcept;
  bool early(std::uint32_t id, std::size_t signal);
  void settled();
  bool release_trigger();
  bool submit(Thread&, std::uint32_t id, const Schedule::Action&);
  void wait(Thread&, std::uint32_t id, std::size_t signal, Compare, std::uint64_t reference);
  void saw(Thread&, std::uint32_t id, std::uint32_t cause);
  bool holds(const Thread&);
  bool wait_rptr(Thread&, std::uint32_t id, const Schedule::Action&);
  void sample(Thread&, std::uint32_t id, const Schedule::Action&);
  void look(Thread&, std::uint32_t id, std::size_t signal, std::uint32_t cause, bool waited);
  void store(Thread&, std::uint32_t id, const Time& takes, What, Phase, const Store&);
  template <class Text> void begin_action(Thread&, Text&&, std::uint64_t value = 0, GpuVa waits_for = {});
  void end_action(const Thread&, const Time& end);
  void store_lands(std::uint32_t index, std::uint32_t node);
  void round_begins(bool by_set);
  void round_ends(const Thread&);
  void snapshot();

  // activity.hpp
  Activity activity() const;
  Activity activity(double ns) const;

  // queues.hpp
  void doorbell(std::uint32_t queue, std::uint64_t position, std::uint32_t node);
  void next_packet(std::uint32_t queue);
  void act(std::uint32_t queue);
  void look(std::uint32_t queue, std::uint32_t cause);
  void decide(std::uint32_t queue);
  void drained(std::uint32_t queue);
  void release(std::uint32_t queue, std::uint32_t node);
  void finish(std::uint32_t queue, Outcome = Outcome::done);
  void consume(std::uint32_t queue, Outcome = Outcome::done);
  bool waits_for_word(std::uint32_t queue);
  void sees(const Program&, bool woken);
  void notify(const Region&, std::uint32_t node);
  void refused(const Program&);
  Machine machine(const Program&) noexcept;
  Outcome execute_now(const Program&, const Fetched&);
  void arrow_from(Program&, std::uint32_t node);

  // engines.hpp
  void want_front(std::uint32_t queue);
  void becomes_ready(Program&);
  Time sent(const Engine&, Time ready);
  bool chained(const Program&);
  bool held(Engine&, std::uint32_t queue);
  std::uint32_t peer_of(const Program&);
  void occupy(std::uint32_t queue);
  bool begins_later(Program&);
  void next_front(Engine&);
  void front_done(std::uint32_t queue);
  void launch(std::uint32_t queue);
  void describe_flight(const Program&, Flight&);
  Time fresh_pages(std::uint32_t gpu, const Region&);
  void enter(std::uint32_t flight);
  void begin_flow(Engine&);
  void moved(std::uint32_t flight);
  void landed(std::uint32_t flight, std::uint32_t node);
  void own(std::uint32_t flow, std::uint32_t owner);
  void reschedule();
  void opened(Engine&) noexcept;
  void closed(Engine&) noexcept;

  // path.hpp
  Simulation result();
  void path(Simulation&);

  const Schedule& s_;
  const MachineDescription& m_;
  const LinkIndex by_ends_{m_.topology};  ///< its links
  const SimulateOptions o_;
  Costs costs_;
  std::vector<Diagnostic> findings_;
  Budget steps_;
  std::uint32_t asked_ = 0;  ///< how often `stops` has been called
  bool stopped_ = false;
  mutable Needs needs_{};
  mutable Uses uses_{};
  std::optional<LinkMemory> memory_;
  Network<Time> net_;
  std::vector<std::string> names_;
  std::vector<Node<Time>> nodes_;
  std::priority_queue<Scheduled> events_;  ///< but ends of flows
  Ends ends_;
  std::uint64_t numbers_ = 0, flights_made_ = 0;
  Time now_{};
  Time flows_changed_{};  ///< the latest change since their rates were found

  std::deque<Thread> threads_;
  LazyPages rings_;  ///< of all queues, and where a front end has packets that cross a ring's end
  std::deque<Program> programs_;
  std::deque<Engine> engines_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> engine_numbers_;  ///< by GPU and engine
  std::vector<Flight> flights_;
  static constexpr std::uint32_t kOfThread = 0x8000'0000u;  ///< the owner of a flow is a thread
  std::vector<std::uint32_t> free_flights_, flow_owner_;
  std::vector<Store> stores_;
  struct Waiter {
    bool thread{};
    std::uint32_t id{};
  };
  std::unordered_map<std::uint64_t, std::vector<Waiter>> waiters_;
  std::unordered_map<std::uint64_t, InTurn<Time>> words_;  ///< of the host, to which engines add
  std::unordered_map<std::uint64_t, Time> changed_;        ///< the latest change of a word, if lanes need it
  std::vector<std::unordered_set<std::uint64_t>> pages_;   ///< that the engines of each GPU have accessed
  // Indices of resources: the memory of each GPU, then the host's; links from place to place.
  std::vector<std::uint32_t> memories_, links_, resource_names_;
  std::size_t places_ = 0;
  std::size_t place_index(Place p) const noexcept { return p.is_host() ? places_ - 1 : p.index; }
  std::size_t link(Place from, Place to) const noexcept { return place_index(from) * places_ + place_index(to); }
  bool leads(Place from, Place to) const noexcept {
    return links_[link(from, to)] != ~0u || unrated_.count(link(from, to)) != 0;
  }
  std::vector<std::vector<std::uint32_t>> shares_;  ///< resources that a link crosses beside itself; as links_
  /// Paths of the topology that take the messages of a link in turn, as links_; and those paths.
  std::vector<std::vector<std::uint32_t>> turns_;
  std::vector<InTurn<Time>> paths_;
  /// A link whose rate, or that of a path which it shares, is unknown; by index, as links_, which do not have it.
  struct Unrated {
    std::string path{};       ///< "link host->gpu0", "path gpu0 NIC out"
    std::string_view rate{};  ///< the parameter that sets it; empty: none does
  };
  std::map<std::size_t, Unrated> unrated_;
  bool lacks_rate_ = false;            ///< the run needs one of these
  std::vector<std::uint64_t> masks_;   ///< engines that suit a link; 0: all; as links_
  std::vector<Cost> flights_between_;  ///< between two GPUs; as links_
  std::vector<trace::LaneId> resource_lanes_;

  std::vector<typename RoundRule<Time>::Round> rounds_;
  std::vector<std::uint32_t> settling_{};  ///< threads whose trigger is held
  bool forced_ = false;
  RoundRule<Time> round_{!s_.kernels.empty()};
  const Numbers random_ = numbers_of(s_);
  double last_ = 0;
  std::uint32_t end_node_ = 0, last_node_ = 0;
  std::vector<Busy> busy_;
  Activity activity_{};      ///< of the last round
  double kernel_bytes_ = 0;  ///< that kernels have loaded and stored in this round
  std::map<const Schedule::Action*, std::vector<std::byte>> old_of_actions_{};
  std::vector<std::vector<std::byte>> old_;  ///< what expectations call `old`, in their order
  Simulation totals_{};
  PatternOf pattern_of_;
  bool times_alone_ = false;
  Times times_{};
};

}}}  // namespace sdma::v0_3::detail
