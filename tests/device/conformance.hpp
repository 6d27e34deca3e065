// SPDX-License-Identifier: MIT
#pragma once
// What a device must do, whoever provides it: conformance_{queues,packets,faults,memory,share}.cpp hold the tests, and
// one file for each kind of device says which devices they run on.
#include "sdma/device/device.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct DeviceUnderTest {
  std::string name{};
  std::function<std::unique_ptr<sdma::Device>()> open{};
  bool watches_wptr = true;   ///< queues without a doorbell
  bool shows_waiting = true;  ///< rptr stays before what a poll holds back
  bool takes_back = true;     ///< a queue that is destroyed at an unmet poll never executes what follows
  bool names_the_packet =
      true;  ///< faults with queue, position and packet, of that queue alone; else as a kernel driver
             ///< tells them: GPU and page, and no queue of the GPU goes on
};

/// At least three GPUs each.
std::vector<DeviceUnderTest> devices_under_test();
