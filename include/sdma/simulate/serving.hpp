// SPDX-License-Identifier: MIT
#pragma once
// A server of a language model under load: when its requests get their first and their last token, by the measured
// times of its steps. The server is that of examples/serving.
//
//   const auto steps = step_times(text, "steps.csv");           // rows of bench/serving/load.py
//   const auto all = poisson_arrivals(40, 12, 1, {.prefix = 2048, .prompt = 64, .tokens = 32});
//   const auto served = serve_requests(all, *steps, {.way = "layer", .blocks = 4096, .batch = 32});
//   if (served) printf("%.3f s\n", served->requests[0].first - all[0].arrival);
//
// One thread takes turns: it admits requests in the order of their arrival while the batch and the free blocks allow
// it, one at a time; it lets those go that are complete; then it decodes one token for each that runs. An admission
// fetches the blocks of the prefix from host memory, prefills the other tokens, and gives the first token. It blocks
// the thread. Blocks are free again when their request is complete.
//
// The table is CSV. '#' begins a comment; columns after ms are not read.
//
//   step,way,batch,cached,new,ms
//   admit,layer,1,2048,64,28.01       2,048 tokens of the prefix are fetched, 64 are prefilled
//   admit,none,1,0,2112,72.36         all are prefilled: nothing is fetched
//   decode,none,8,2048,64,20.15       one token for each of 8 requests of 2,112 tokens
//
// Between measured shapes, times are linear in each axis. Beyond them there is no answer, unless
// ServingOptions::nearest takes the time of the nearest shape; the answer then counts such steps.
//
// Plain values that allocate; any thread may read. Errors: a Diagnostic, of a table with its line.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// How long each step of a server takes, by its shape.
struct StepTimes {
  /// Milliseconds by two sizes: by the first, then the second.
  using Grid = std::map<std::uint64_t, std::map<std::uint64_t, double>>;
  /// Of one step.
  struct Time {
    double ms{};    ///< of the step
    bool beyond{};  ///< the shape is beyond the table: this is the time of the nearest one in it
  };
  std::map<std::string, Grid, std::less<>> admit{};  ///< by way: by tokens that are fetched, then prefilled
  Grid decode{};                                     ///< by tokens of a request, then requests

  /// Of a shape; nothing if the grid is empty.
  static std::optional<Time> time(const Grid&, std::uint64_t first, std::uint64_t second);
};
/// Reads a table; `file` names it in messages.
Result<StepTimes, Diagnostic> step_times(std::string_view text, std::string_view file);

/// What arrives.
struct ServingRequest {
  double arrival{};        ///< in seconds
  std::uint64_t prefix{};  ///< tokens whose blocks are in host memory
  std::uint64_t prompt{};  ///< tokens after the prefix
  std::uint64_t tokens{};  ///< to generate
};
/// `count` requests like `each` with exponential gaps, `rate` a second in the mean. A seed gives the same ones again.
std::vector<ServingRequest> poisson_arrivals(std::size_t count, double rate, std::uint64_t seed,
                                             const ServingRequest& each);
/// Reads recorded arrivals: CSV with a column `arrival`; those of prefix, prompt and tokens replace what `each` has.
Result<std::vector<ServingRequest>, Diagnostic> recorded_arrivals(std::string_view text, std::string_view file,
                                                                  const ServingRequest& each);

/// The server.
struct ServingOptions {
  std::string way = "none";        ///< of fetching prefixes, as the table names it; none: they are computed again
  std::uint64_t blocks{};          ///< of the GPU's memory
  std::uint64_t batch{};           ///< requests that are decoded together, at most
  std::uint64_t block_tokens{16};  ///< tokens of a block
  bool nearest{};                  ///< a shape beyond the table takes the time of the nearest one
};

/// When a request was served, in seconds.
struct ServedRequest {
  double admitted{};           ///< its admission began
  double first{};              ///< its first token was there
  double last{};               ///< its last token was there, and its blocks were free
  double waited_for_blocks{};  ///< of the time before its admission: the queue's head found too few free blocks
  double waited_for_batch{};   ///< the batch was full
  double waited_for_others{};  ///< others were admitted, or a step that had begun was not over
};
/// What became of all requests.
struct Serving {
  std::vector<ServedRequest> requests{};  ///< in the order of their arrival
  std::size_t decode_steps{};             ///< how many
  std::size_t admissions_beyond{};        ///< admissions of a shape beyond the table
  std::size_t decodes_beyond{};           ///< decode steps of a shape beyond the table
  double seconds{};                       ///< from zero to the last token
  double tokens_per_second{};             ///< of all requests, over these seconds
};
/// Serves requests that are sorted by their arrival.
Result<Serving, Diagnostic> serve_requests(const std::vector<ServingRequest>&, const StepTimes&, const ServingOptions&);

}}  // namespace sdma::v0_3
