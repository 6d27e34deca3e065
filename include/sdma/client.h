/* SPDX-License-Identifier: MIT */
#ifndef SDMA_CLIENT_H
#define SDMA_CLIENT_H
/*
 * Devices, memory, schedules, collectives and lists of copies for clients in C and in languages that call C: ctypes,
 * Rust, IREE. A thin C interface to the C++ headers, which offer more. Link libsdma-client (pkg-config sdma-client).
 *
 *   sdma_device* d = sdma_open("cuda", "gpus=2");
 *   if (!d) { puts(sdma_error()); return 1; }             // what, where, and what to do, in words
 *   sdma_work* w = sdma_bind_collective(d, "collective=all_gather gpus=2 bytes=1M");
 *   sdma_stream s[2];
 *   for (uint32_t g = 0; g < 2; ++g) sdma_stream_of(d, streams[g], &s[g]);      // CUstreams
 *   for (uint32_t g = 0; g < 2; ++g) sdma_enqueue(w, g, &s[g]);                 // after a kernel, before another one
 *   if (sdma_wait(w, 10.0)) puts(sdma_error());
 *   sdma_unbind(w);
 *   sdma_close(d);
 *
 * Streams. Work is enqueued: the host does not wait. Packets begin when the stream reaches them, and later work of the
 * stream waits until they are complete (sdma/sync/stream_order.hpp). Every stream writes a word that queues poll, and
 * then waits until the words that queues store equal the number of the round:
 *
 *   stream   kernel | write go = 7 | hold until done == 7 | kernel
 *                          v                 ^
 *   queue         [poll go == 7]  copies  [fence done = 7]
 *
 * Copies that are listed at run time (sdma_copies) come in parts. Each part has a word of its own, so a stream can wait
 * for one part while the next is in flight:
 *
 *   sdma_copies* c = sdma_copies_create(d, 0, "queues=2 parts=32");
 *   sdma_round(c);                                        // the number of this round; publish at any time from now on
 *   for (uint32_t l = 0; l < 32; ++l) sdma_publish(c, l % 2, l, copies[l], n[l], 0);
 *   sdma_release(c, &s);                                  // packets begin when the stream gets here
 *   for (uint32_t l = 0; l < 32; ++l) sdma_hold(c, l, &s), launch(layer[l]);
 *
 * Publish all parts of a round before the next one begins: each part once, each queue from one thread at a time.
 * Several threads may serve several queues at once. Hold or wait for every part that you publish before you release the
 * next round. Without a stream, pass NULL to sdma_release, and wait with sdma_copies_wait.
 *
 * Ranks. Several processes, often one for each GPU, bind together (docs/processes.md). Each opens the device as a rank
 * and makes the same calls of sdma_bind in the same order. GPUs are divided evenly: of two, rank 1 has gpu 1. A rank
 * enqueues on the streams of its own GPUs. If a rank ends, the waits of the others fail, and sdma_error names the rank.
 *
 *   sdma_device* d = sdma_open("cuda", "rank=1 ranks=2 session=/tmp/run7");      // an empty folder, for one run
 *
 * Graphs. A captured stream repeats the values of its words in each replay, so the rounds of a graph need their own
 * values:
 *
 *   uint32_t graph = sdma_graph(w, g, 32);                // enqueue a round before the capture begins
 *   for (uint32_t i = 0; i < 32; ++i) sdma_pass(w, g, graph, i, &s), launch(layer[i]);     // captured
 *   launch_graph(..), sdma_replay(w, g, graph);           // for each launch, in their order
 *
 * Settings are words "name=value" with blanks between them, or NULL. Sizes may end with K, M or G.
 *
 * Errors. After an error, a function that creates a handle returns NULL; other functions return SDMA_TIMED_OUT or
 * SDMA_FAILED, which are not 0. sdma_error() returns the reason for the calling thread's last call that failed. Nothing
 * is thrown. Passing NULL as a handle is an error, not a crash; passing a handle that was already given back is not
 * detected.
 *
 * Lifetime. Handles may be given back in any order; NULL is ignored. Each handle keeps its device open. Wait for work
 * to complete before you give back memory that it uses. Threads: any thread may use any handle, but only one thread at
 * a time may use the same handle, except as stated above.
 *
 * Time. A call that waits takes the seconds from the call to its deadline. The others wait for a minute at most, for
 * room in a ring or as a stream (sdma_stream_of); sdma_open says how long a bind waits for other ranks. sdma_free waits
 * for no engine, sdma_unbind for what engines are executing.
 *
 * Binary interface: functions are added, not changed, within libsdma-client.so.0; structs keep their members.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdma_device sdma_device; /**< the GPUs of a node */
typedef struct sdma_memory sdma_memory; /**< memory that engines reach */
typedef struct sdma_work sdma_work;     /**< a schedule or a collective, bound to a device */
typedef struct sdma_copies sdma_copies; /**< queues for copies that are listed at run time */

/** What functions return. */
enum {
  SDMA_OK = 0,        /**< done */
  SDMA_TIMED_OUT = 1, /**< not complete in time; it may still become so */
  SDMA_FAILED = 2     /**< refused, or a queue has stopped */
};
/** In place of a GPU's number: the host. */
#define SDMA_HOST (-1)

/** The library's version, "0.3.0". */
const char* sdma_version(void);
/** The version as a number: 10000 * major + 100 * minor + patch. A program runs with its own version and later ones of
 * libsdma-client.so.0. */
uint32_t sdma_version_number(void);
/** Why this thread's last failed call failed: a sentence, and often a line "hint: what to do". "" if none has. */
const char* sdma_error(void);
/** What kind of failure that was, for a program that decides what to do next: one of SDMA_ERROR_*. Later versions may
 * return new numbers: treat those as SDMA_ERROR_OTHER. Returned values of calls do not depend on it. */
int sdma_error_class(void);
enum {
  SDMA_ERROR_NONE = 0,       /**< no call of this thread has failed */
  SDMA_ERROR_OTHER = 1,      /**< none of the following, or not known: conclude nothing */
  SDMA_ERROR_ARGUMENT = 2,   /**< bad argument: the call cannot succeed as it was made, and has changed nothing */
  SDMA_ERROR_MEMORY = 3,     /**< no memory: free some, and try again */
  SDMA_ERROR_DEVICE = 4,     /**< no device: it, its driver or its library is not there */
  SDMA_ERROR_QUEUE_LOST = 5, /**< a queue has stopped: what was not complete is lost; give the handle back */
  SDMA_ERROR_RANK_LOST = 6,  /**< another process of the session has ended */
  SDMA_ERROR_TIMED_OUT = 7   /**< not complete, or no room, in time; it may still become so */
};

/** Opens a device: "soft", "kfd", "cuda" or "rocr". Settings: gpus=N (soft: 1 to 8; cuda: logical ones share those
 * that there are), and for soft order=strict|rocr|adversarial and seed=N. As one of several processes: rank=R ranks=N
 * session=FOLDER, and patience=SECONDS (60), which a bind waits for the other ranks. */
sdma_device* sdma_open(const char* kind, const char* settings);
/** Gives the handle back. The device closes with the last handle that uses it. */
void sdma_close(sdma_device*);
/** How many GPUs it has. */
uint32_t sdma_gpus(const sdma_device*);
/** What a cuda device has given to the driver so far. Rows go as copies or, four or more, as one strided copy: the
 * device chooses. */
typedef struct sdma_issued {
  uint64_t calls;   /**< of the driver: a batch of copies is one */
  uint64_t copies;  /**< in batches or alone */
  uint64_t batches; /**< of copies */
  uint64_t boxes;   /**< strided copies */
  uint64_t rows;    /**< of strided copies */
  uint64_t refused; /**< batches that the driver has refused */
  uint64_t wakes;   /**< times that a publisher has left something to the device's thread */
} sdma_issued;
/** Fills `to`. Other devices than cuda: refused. */
int sdma_issued_by(const sdma_device*, sdma_issued* to);
/** What to know before any time of this device is read, such as that logical GPUs share one; "" if there is nothing.
 * Valid until the handle is given back. */
const char* sdma_caveat(const sdma_device*);

/** Memory of a GPU or of the host, aligned to 4096, which all GPUs reach. Host memory is zeroed. */
sdma_memory* sdma_allocate(sdma_device*, int32_t where, uint64_t bytes);
/** Lends memory of others to engines, on cuda and rocr: that of PyTorch's allocator, say. The caller keeps it. */
sdma_memory* sdma_adopt(sdma_device*, void* pointer, uint64_t bytes);
/** Its address as engines see it. */
uint64_t sdma_address(const sdma_memory*);
/** Its bytes as the host sees them; NULL if it cannot. On cuda, GPU memory is not visible. */
void* sdma_host(const sdma_memory*);
/** Gives it back. */
void sdma_free(sdma_memory*);

/** A stream: what it does when it gets there. Both functions enqueue, and return 0 or the runtime's error. */
typedef struct sdma_stream {
  void* stream;                                              /**< passed to both functions */
  int (*write)(void* stream, uint64_t word, uint32_t value); /**< stores after everything earlier is complete */
  int (*hold)(void* stream, uint64_t word, uint32_t value);  /**< later work waits until the word equals the value */
} sdma_stream;
/** The stream of a runtime for this device. cuda: `native` is a CUstream of the current context. soft and kfd: the
 * calling thread is the stream, `native` is ignored, and a hold blocks for a minute at most; so each GPU of a
 * collective needs a thread of its own. rocr: refused; fill the struct with hipStreamWriteValue32 and
 * hipStreamWaitValue32 (docs/stream_order.md). */
int sdma_stream_of(sdma_device*, void* native, sdma_stream*);

/** Binds a schedule (docs/schedules.md). Settings: values of its params. `lent`: memory for its buffers with a fixed
 * `at`, which a param can carry. To be enqueued, it needs a signal host.go, which its queues poll for `epoch`, and
 * signals whose names begin with host.done, which they set to `epoch`:
 *
 *   poll_mem addr=host.go func=eq reference=epoch | copies | fence addr=host.done value=epoch
 */
sdma_work* sdma_bind_text(sdma_device*, const char* text, const char* settings, sdma_memory* const* lent, size_t count);
/** The same from a file. */
sdma_work* sdma_bind_file(sdma_device*, const char* path, const char* settings, sdma_memory* const* lent, size_t count);
/** Binds a collective: collective=all_gather|all_to_all|.. gpus=N bytes=SIZE, variant, root and the other options of
 * sdma plan. With carried=yes, the copies are in the streams (of cuda and soft) themselves, in place of queues: quicker
 * where a GPU has one peer, and with more, one copy after another. sdma_replay then publishes nothing. With turns=2
 * besides, buffers have room for two all-gathers: the stream's n-th eager round, from 0, and round n of a graph are in
 * turn n % 2, whose data begins turn * (bytes rounded up to a multiple of 256) after that of turn 0. Then graphs have
 * an even number of rounds, and an even number of eager rounds precedes each launch. */
sdma_work* sdma_bind_collective(sdma_device*, const char* settings);
/** A buffer of the schedule, "gpu0.buf": its address and length. `host`: its bytes as the host sees them, or NULL. Any
 * of the three may be NULL. */
int sdma_buffer(const sdma_work*, const char* name, uint64_t* address, uint64_t* bytes, void** host);
/** One round in the order of a stream. A collective has a stream for each GPU, and all are enqueued before the host
 * waits; a schedule has one, for gpu 0. Of ranks: a stream of this rank's GPU. */
int sdma_enqueue(sdma_work*, uint32_t gpu, const sdma_stream*);
/** Waits until every round that was enqueued is complete; of ranks: all that touches this rank's GPUs. With 0 seconds
 * or less, it only looks. */
int sdma_wait(sdma_work*, double seconds);
/** A graph of so many rounds in the order of a GPU's stream; its number, or 0: failed. Collectives only. All streams of
 * a collective make the same graphs in the same order. */
uint32_t sdma_graph(sdma_work*, uint32_t gpu, uint32_t rounds);
/** A round of a graph, 0 to rounds - 1 in order: what a stream does for it, without packets. Call it in the capture. On
 * soft and kfd, where the thread is the stream, call sdma_replay, then this for each round. */
int sdma_pass(sdma_work*, uint32_t gpu, uint32_t graph, uint32_t round, const sdma_stream*);
/** Publishes the packets of one launch. Blocks while a ring has no room, for a minute at most: launch a graph that is
 * longer than the ring first. */
int sdma_replay(sdma_work*, uint32_t gpu, uint32_t graph);
/** Gives it back, with its queues and buffers. */
void sdma_unbind(sdma_work*);

/** `rows` rows of `bytes` bytes, each `pitch` bytes after the one before. One row: a copy. */
typedef struct sdma_copy {
  uint64_t src;       /**< an address as engines see it */
  uint64_t dst;       /**< likewise */
  uint64_t bytes;     /**< of a row, 1 or more */
  uint64_t rows;      /**< 1 or more */
  uint64_t src_pitch; /**< from a row to the next; ignored if there is one row */
  uint64_t dst_pitch; /**< likewise */
} sdma_copy;
/** Queues of a GPU for copies. Settings: queues=N (1), parts=N (1), direction=from_host|to_host (from_host), ring=SIZE
 * (1M), boxes=yes|no (yes): rows go as one packet, where they fit into one. */
sdma_copies* sdma_copies_create(sdma_device*, uint32_t gpu, const char* settings);
/** Begins the next round, and returns its number; 0: failed, because the last round was not released. */
uint32_t sdma_round(sdma_copies*);
/** Publishes a part of this round on a queue. `each`: a doorbell for each copy; 0: one for all. Blocks while the ring
 * has no room, for a minute at most. What has been published begins once the round has been released. */
int sdma_publish(sdma_copies*, uint32_t queue, uint32_t part, const sdma_copy*, size_t count, int each);
/** The stream lets the round begin when it gets there; NULL: now. */
int sdma_release(sdma_copies*, const sdma_stream*);
/** The stream waits for a part of this round. */
int sdma_hold(sdma_copies*, uint32_t part, const sdma_stream*);
/** The host waits for a part of this round, as sdma_wait. */
int sdma_copies_wait(sdma_copies*, uint32_t part, double seconds);
/** Gives it back, with its queues. */
void sdma_copies_free(sdma_copies*);

#ifdef __cplusplus
}
#endif
#endif
