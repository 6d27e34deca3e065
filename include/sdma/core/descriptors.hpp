#pragma once
// Standard input, output and error of a program that was started without one of them.
//
//   int main() {
//     sdma::keep_standard_descriptors();         // before anything is opened
//     ...
//
// A descriptor from 0 to 2 that was closed goes to the next file that the program opens, and then messages land in that file.
// This function puts a descriptor in its place that refuses what it was closed for: reads of input and writes of output fail
// with EBADF. Call it before other threads run. No errors: without /dev/null everything stays as it is.

namespace sdma {
inline namespace v0 {

void keep_standard_descriptors() noexcept;

}  // namespace v0
}  // namespace sdma
