// SPDX-License-Identifier: MIT
#pragma once
// An algorithm of MSCCL as its XML file has it: plain data with the lines of the file. Internal to tools/msccl.
//
//   auto a = read_algorithm(xml, "ag.xml");          // algorithm.cpp: the elements and their attributes
//   if (auto wrong = connect(*a)) return *wrong;     // connect.cpp: what is wrong in every execution
//   return lower(*a, {.slots = 2});                  // lower.cpp: the text of a schedule
#include "msccl.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::msccl {

/// The rule of what refutes an algorithm before there is a schedule of it.
inline constexpr const char* kWrongAlgorithm = "wrong-algorithm";

/// Where a step is.
struct StepId {
  std::size_t gpu{}, block{}, step{};
};

/// What a step does, in this order.
struct StepType {
  std::string_view name;
  bool receives, adds, sends;
  bool reads_source, writes_target;  ///< memory of its own GPU
};
const StepType* step_type(std::string_view name) noexcept;

struct BufferPlace {
  char buffer{};  ///< i, o or s
  std::int64_t offset{};
};

struct Step {
  std::uint32_t line{};
  const StepType* type{};  ///< null: a nop
  BufferPlace source{}, target{};
  std::int64_t count{};  ///< chunks
  std::int64_t dep_block = -1, dep_step = -1;
  bool publishes = false;  ///< hasdep: others may wait for it
  // What `connect` finds.
  StepId to{}, from{};             ///< what receives its send, and what sends what it receives
  std::size_t sent{}, received{};  ///< how many precede it on the connection
};
struct Block {
  std::uint32_t line{};
  std::int64_t send = -1, receive = -1, channel{};
  std::int64_t largest{};  ///< the most chunks of a step
  std::vector<Step> steps{};
};
struct Gpu {
  std::uint32_t line{};
  std::int64_t in{}, out{}, scratch{};  ///< chunks
  std::vector<Block> blocks{};
};
struct Algorithm {
  std::string file{}, name{}, collective{};
  std::uint32_t line{};
  std::int64_t channels{}, chunks{};  ///< nchunksperloop
  bool in_place{}, out_of_place{};
  std::vector<Gpu> gpus{};

  const Step& at(const StepId& s) const { return gpus[s.gpu].blocks[s.block].steps[s.step]; }
  Diagnostic error(std::uint32_t at, std::string message, std::string hint = {}) const {
    return error_at({.file = file, .line = at}, std::move(message), std::move(hint));
  }
};

/// The buffers of a collective, and what it leaves in them.
struct Collective {
  std::string_view name;
  bool has_pieces;           ///< a buffer has a piece for each GPU
  bool in_piece, out_piece;  ///< that buffer is one piece
  bool in_place;             ///< is a rule known for it in place?
  /// Lines of a schedule with N GPUs and pieces of `part` bytes. IN and OUT stand for the buffers; `own` is 1 if the
  /// smaller one is a piece of the larger one.
  std::string_view expects;
};
const Collective* collective(std::string_view name) noexcept;
/// The chunks of each GPU's input and output.
std::int64_t in_chunks(const Algorithm&) noexcept;
std::int64_t out_chunks(const Algorithm&) noexcept;

/// A queue that needs an engine.
struct QueueNeed {
  std::int64_t peer{};  ///< -1: its copies stay within the GPU
  bool waits{};         ///< it has a poll
};
/// For each queue of a GPU, the words that choose its engine.
std::vector<std::string> engines(std::size_t gpu, std::size_t gpus, const std::vector<QueueNeed>&);

Result<Algorithm, Wrong> read_algorithm(std::string_view xml, const std::string& file);
/// What is wrong with the algorithm, and not only with one execution of it. Otherwise, pairs sends with receives.
std::optional<Wrong> connect(Algorithm&);
/// The schedule of an algorithm that `connect` has found nothing wrong with.
Result<Text, Wrong> lower(const Algorithm&, const Choices&);

}  // namespace sdma::msccl
