#pragma once
// The model socket of newer libhsakmt: a library that takes the place of the kernel driver, with sDMA queues.
//
//   HSA_MODEL_TOPOLOGY=DIR HSA_MODEL_LIB=/.../libsdma-model.so PROGRAM
//
//   libhsakmt -> get_hsakmt_model_functions() -> create -> set_global_aperture, set_set_event
//                    alloced_memory, register_queue ... destroy_queue, freed_memory -> destroy
//
// What is known of it: the variables, the name of the function that the library exports, the version (0.4), the names of the
// eight functions, that queues are SDMA queues only, that there is no doorbell (write pointers are looked at), and that
// events are set by a function that is handed over. NOT known: the functions' arguments, the order of the table, the form of
// a queue's description. Those below are this project's, complete and tested among themselves; a libhsakmt that declares
// others needs this one header changed, and nothing else. docs/emulator.md says so too.
//
// Plain C types: this is a binary interface.
#include <cstdint>

extern "C" {

struct hsakmt_model;

/// An SDMA queue. All addresses are the program's, which are the GPU's as well.
struct hsakmt_model_queue_info {
  std::uint64_t ring, ring_bytes;             ///< a power of two of bytes
  std::uint64_t write_pointer, read_pointer;  ///< of 64-bit words: bytes since the queue's first use
  std::uint32_t node, queue_id;
};

typedef void (*hsakmt_model_set_event)(void* data, std::uint32_t event_id);

struct hsakmt_model_functions {
  std::uint32_t version_major, version_minor;
  hsakmt_model* (*create)();
  void (*destroy)(hsakmt_model*);
  /// Memory of the program in which all that GPUs see lies.
  void (*set_global_aperture)(hsakmt_model*, void* base, std::uint64_t bytes);
  void (*alloced_memory)(hsakmt_model*, void* address, std::uint64_t bytes, std::uint32_t flags);
  void (*freed_memory)(hsakmt_model*, void* address, std::uint64_t bytes);
  /// 0, or an errno.
  int (*register_queue)(hsakmt_model*, const hsakmt_model_queue_info*);
  void (*set_set_event)(hsakmt_model*, hsakmt_model_set_event, void* data);
  /// Back when the engine touches neither ring nor data any more. Does not drain.
  int (*destroy_queue)(hsakmt_model*, std::uint32_t queue_id);
};

const hsakmt_model_functions* get_hsakmt_model_functions();
}
