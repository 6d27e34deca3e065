/* SPDX-License-Identifier: MIT */
/* Every function of sdma/client.h, in the order that the first argument names. A line for each thing that is wrong. */
#include "sdma/client.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static _Atomic int wrong = 0; /* threads check, too */
#define CHECK(what)                                                       \
  do {                                                                    \
    if (!(what)) {                                                        \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #what, sdma_error()); \
      ++wrong;                                                            \
    }                                                                     \
  } while (0)
#define REFUSED(what, why) CHECK((what) && strstr(sdma_error(), why))
#define REFUSED_AS(class, what, why) CHECK((what) && strstr(sdma_error(), why) && sdma_error_class() == (class))

enum { N = 4096 };

static const char* schedule =
    "sdma 1\n"
    "param N = 64\n"
    "param lent = 0\n"
    "gpus 1\n"
    "buffer host.in bytes=N at=lent\n"
    "buffer gpu0.out bytes=N\n"
    "signal host.go value=0 bits=32\n"
    "signal host.done value=0 bits=32\n"
    "queue gpu0.q engine=1\n"
    "  poll_mem addr=host.go func=eq reference=epoch\n"
    "  copy_linear bytes=N src=host.in dst=gpu0.out\n"
    "  fence addr=host.done value=epoch\n"
    "end\n";

/* A stream of the test's own, which only notes what it is given first and last. */
struct noted {
  uint64_t word;
  uint32_t value;
};
static int note(void* stream, uint64_t word, uint32_t value) {
  struct noted* n = stream;
  n->word = word;
  n->value = value;
  return 0;
}
static int nothing(void* stream, uint64_t word, uint32_t value) { return !stream || !word || !value; }
static int refuse(void* stream, uint64_t word, uint32_t value) {
  (void)stream, (void)word, (void)value;
  return 77;
}

static void schedules(sdma_device* d, const sdma_stream* s) {
  sdma_memory* in = sdma_allocate(d, SDMA_HOST, N);
  CHECK(in && sdma_address(in) && sdma_host(in));
  char settings[64];
  snprintf(settings, sizeof settings, "N=%d lent=%llu", N, (unsigned long long)sdma_address(in));
  sdma_work* w = sdma_bind_text(d, schedule, settings, &in, 1);
  CHECK(w);
  uint64_t bytes = 0, address = 0;
  void* out = NULL;
  CHECK(sdma_buffer(w, "gpu0.out", &address, &bytes, &out) == SDMA_OK);
  CHECK(bytes == N && address && out);
  CHECK(sdma_wait(w, 0) == SDMA_OK);
  for (int round = 1; round <= 20 && out; ++round) {
    memset(sdma_host(in), round, N);
    CHECK(sdma_enqueue(w, 0, s) == SDMA_OK);
    CHECK(sdma_wait(w, 10) == SDMA_OK);
    CHECK(((unsigned char*)out)[0] == round && ((unsigned char*)out)[N - 1] == round);
  }
  /* The stream does not get there, and the host sees that nothing is complete. */
  struct noted noted = {0, 0};
  const sdma_stream late = {&noted, note, nothing}, unwilling = {NULL, refuse, refuse};
  memset(sdma_host(in), 99, N);
  CHECK(sdma_enqueue(w, 0, &late) == SDMA_OK);
  REFUSED_AS(SDMA_ERROR_TIMED_OUT, sdma_wait(w, 0.001) == SDMA_TIMED_OUT, "waiting in poll_mem");
  CHECK(out && ((unsigned char*)out)[0] == 20);
  CHECK(s->write(s->stream, noted.word, noted.value) == 0 && sdma_wait(w, 10) == SDMA_OK);
  CHECK(out && ((unsigned char*)out)[0] == 99);
  REFUSED(sdma_enqueue(w, 0, &unwilling) == SDMA_FAILED, "status 77");
  CHECK(sdma_wait(w, 10) == SDMA_OK);
  REFUSED(sdma_buffer(w, "gpu0.what", NULL, NULL, NULL) == SDMA_FAILED, "no buffer 'gpu0.what'");
  REFUSED(sdma_enqueue(w, 1, s) == SDMA_FAILED, "no stream of gpu 1");
  sdma_unbind(w);
  REFUSED(!sdma_bind_text(d, "sdma 1\ngpu\n", NULL, NULL, 0), "text:2");
  REFUSED(!sdma_bind_text(d, schedule, "what=1", &in, 1), "what");
  REFUSED(!sdma_bind_file(d, "/nowhere/x.sdma", NULL, NULL, 0), "/nowhere/x.sdma");
  w = sdma_bind_text(d, "sdma 1\ngpus 1\nbuffer gpu0.b bytes=64\n", NULL, NULL, 0);
  REFUSED(sdma_enqueue(w, 0, s) == SDMA_FAILED, "host.go");
  sdma_unbind(w);
  sdma_free(in);
}

struct part {
  sdma_device* device;
  sdma_work* work;
  uint32_t gpu;
};
static void* rounds(void* p) {
  const struct part* part = p;
  sdma_stream s;
  CHECK(sdma_stream_of(part->device, NULL, &s) == SDMA_OK);
  REFUSED(!sdma_graph(part->work, part->gpu, 3), "before the capture");
  for (int i = 0; i < 10; ++i) CHECK(sdma_enqueue(part->work, part->gpu, &s) == SDMA_OK);
  /* Graphs of three rounds and of one, whose launches take turns with each other and with eager rounds. */
  const uint32_t rounds_of[] = {3, 1};
  uint32_t graphs[2];
  for (int k = 0; k < 2; ++k) CHECK((graphs[k] = sdma_graph(part->work, part->gpu, rounds_of[k])) != 0);
  for (int i = 0; i < 12; ++i) {
    const int k = i % 5 < 3;
    CHECK(sdma_replay(part->work, part->gpu, graphs[k]) == SDMA_OK);
    for (uint32_t r = 0; r < rounds_of[k]; ++r) CHECK(sdma_pass(part->work, part->gpu, graphs[k], r, &s) == SDMA_OK);
    if (i % 4 == 0) CHECK(sdma_enqueue(part->work, part->gpu, &s) == SDMA_OK);
  }
  REFUSED(sdma_pass(part->work, part->gpu, graphs[1], 1, &s) == SDMA_FAILED, "no round 1");
  REFUSED(sdma_replay(part->work, part->gpu, 9) == SDMA_FAILED, "no graph 9");
  return NULL;
}
static void collectives(sdma_device* d) {
  sdma_work* w = sdma_bind_collective(d, "collective=all_gather gpus=2 bytes=8K");
  CHECK(w);
  unsigned char* at[2] = {NULL, NULL};
  CHECK(sdma_buffer(w, "gpu0.buf", NULL, NULL, (void**)&at[0]) == SDMA_OK);
  CHECK(sdma_buffer(w, "gpu1.buf", NULL, NULL, (void**)&at[1]) == SDMA_OK);
  memset(at[0], 7, N);
  memset(at[1] + N, 9, N);
  pthread_t thread;
  struct part parts[2] = {{d, w, 0}, {d, w, 1}};
  CHECK(pthread_create(&thread, NULL, rounds, &parts[1]) == 0);
  rounds(&parts[0]);
  pthread_join(thread, NULL);
  CHECK(sdma_wait(w, 10) == SDMA_OK);
  CHECK(at[0][N] == 9 && at[0][2 * N - 1] == 9 && at[1][0] == 7 && at[1][N - 1] == 7);
  sdma_unbind(w);
  REFUSED(!sdma_bind_collective(d, "collective=all_gather gpus=1 bytes=8K"), "GPUs");
  REFUSED(!sdma_bind_collective(d, "collective=what"), "not a collective");
  REFUSED(!sdma_bind_collective(d, "completion=atomic"), "streams");
}

/* Rows at a stride as one packet or as many, in two parts on two queues. */
static void copies(sdma_device* d, const sdma_stream* s, const char* settings, int each) {
  sdma_memory *from = sdma_allocate(d, SDMA_HOST, 4 * N), *to = sdma_allocate(d, 0, 4 * N);
  sdma_copies* c = sdma_copies_create(d, 0, settings);
  CHECK(from && to && c);
  unsigned char *src = sdma_host(from), *dst = sdma_host(to);
  REFUSED(sdma_publish(c, 0, 0, NULL, 0, 0) == SDMA_FAILED, "no round has begun");
  for (int round = 1; round <= 10; ++round) {
    for (int i = 0; i < 4 * N; ++i) src[i] = (unsigned char)(i / 256 + round);
    memset(dst, 0, 4 * N);
    CHECK(sdma_round(c) != 0);
    REFUSED(sdma_round(c) == 0, "has not been released");
    /* Part 0: rows 3 and 1 of 1 KiB, to rows 0 and 2. Part 1: one copy, and a box of three rows of 256 bytes. */
    const sdma_copy rows = {sdma_address(from) + 1024, sdma_address(to), 1024, 2, 2048, 2048};
    const sdma_copy two[] = {{sdma_address(from) + 8192, sdma_address(to) + 8192, 100, 1, 0, 0},
                             {sdma_address(from) + 12288, sdma_address(to) + 12288, 256, 3, 512, 256}};
    CHECK(sdma_publish(c, 0, 0, &rows, 1, each) == SDMA_OK);
    CHECK(sdma_publish(c, 1, 1, two, 2, each) == SDMA_OK);
    CHECK(sdma_copies_wait(c, 0, 0.001) == SDMA_TIMED_OUT);
    CHECK(dst[0] == 0);
    CHECK(sdma_release(c, round % 2 ? s : NULL) == SDMA_OK);
    for (uint32_t part = 0; part < 2; ++part) CHECK(sdma_hold(c, part, s) == SDMA_OK);
    for (uint32_t part = 0; part < 2; ++part) CHECK(sdma_copies_wait(c, part, 10) == SDMA_OK);
    CHECK(!memcmp(dst, src + 1024, 1024) && !memcmp(dst + 2048, src + 3072, 1024) && dst[1024] == 0);
    CHECK(!memcmp(dst + 8192, src + 8192, 100) && dst[8292] == 0);
    for (int r = 0; r < 3; ++r) CHECK(!memcmp(dst + 12288 + 256 * r, src + 12288 + 512 * r, 256));
  }
  REFUSED(sdma_publish(c, 2, 0, NULL, 0, 0) == SDMA_FAILED, "no queue 2");
  REFUSED(sdma_hold(c, 2, s) == SDMA_FAILED, "no part 2");
  /* A queue that stops: nothing is there. */
  const sdma_copy lost = {64, sdma_address(to), 64, 1, 0, 0};
  CHECK(sdma_round(c) != 0 && sdma_publish(c, 0, 0, &lost, 1, 0) == SDMA_OK && sdma_release(c, NULL) == SDMA_OK);
  REFUSED_AS(SDMA_ERROR_QUEUE_LOST, sdma_copies_wait(c, 0, 10) == SDMA_FAILED, "gpu 0");
  sdma_copies_free(c);
  sdma_free(from);
  sdma_free(to);
}

int main(int argc, char** argv) {
  char settings[64];
  snprintf(settings, sizeof settings, "gpus=2 order=%s seed=7", argc > 1 ? argv[1] : "strict");
  CHECK(!strcmp(sdma_error(), "") && sdma_error_class() == SDMA_ERROR_NONE);
  CHECK(sdma_version_number() == SDMA_EXPECTED_NUMBER && !strcmp(sdma_version(), SDMA_EXPECTED_VERSION));
  sdma_device* d = sdma_open("soft", settings);
  CHECK(d && sdma_gpus(d) == 2 && !strcmp(sdma_caveat(d), ""));
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_open("hard", NULL), "soft, kfd, cuda or rocr");
  sdma_device* hardware = sdma_open("kfd", NULL);
  CHECK(hardware || sdma_error_class() == SDMA_ERROR_DEVICE);
  sdma_close(hardware);
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_open("soft", "gpus=many"), "gpus=many");
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_open("soft", "gpus=64"), "64");
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_bind_text(d, "sdma 1\nnothing\n", NULL, NULL, 0), "nothing");
  REFUSED_AS(SDMA_ERROR_MEMORY, !sdma_allocate(d, SDMA_HOST, ~0ull - 4096), "out of memory");
  REFUSED(!sdma_open("soft", "order=odd"), "no order 'odd'");
  REFUSED(!sdma_open("soft", "word"), "name=value");
  REFUSED(!sdma_open("soft", "rank=2 ranks=2 session=/tmp"), "rank 2 of 2");
  REFUSED(!sdma_open("soft", "rank=0 ranks=2"), "session=FOLDER");
  REFUSED(!sdma_open("soft", "what=1"), "no setting 'what'");
  REFUSED(!sdma_open(NULL, NULL), "NULL");
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_allocate(d, 5, N), "gpu5");
  REFUSED_AS(SDMA_ERROR_ARGUMENT, !sdma_allocate(d, 0, 0), "0");
  REFUSED(!sdma_adopt(d, settings, 64), "sdma_allocate");
  REFUSED(!sdma_copies_create(d, 0, "parts=0"), "0 queues or parts");
  REFUSED(!sdma_copies_create(d, 0, "what=1"), "what=1");
  REFUSED_AS(SDMA_ERROR_DEVICE, !sdma_copies_create(d, 9, NULL), "no gpu9");
  sdma_stream s;
  CHECK(sdma_stream_of(d, NULL, &s) == SDMA_OK);
  CHECK(s.write(s.stream, 64, 1) != 0 && s.hold(s.stream, 64, 1) != 0);
  schedules(d, &s);
  collectives(d);
  copies(d, &s, "queues=2 parts=2", 0);
  copies(d, &s, "queues=2 parts=2 boxes=no ring=4K", 1);
  /* NULL is an error, or nothing. */
  CHECK(sdma_enqueue(NULL, 0, &s) == SDMA_FAILED && sdma_wait(NULL, 0) == SDMA_FAILED && sdma_round(NULL) == 0);
  CHECK(sdma_release(NULL, NULL) == SDMA_FAILED && sdma_hold(NULL, 0, &s) == SDMA_FAILED);
  CHECK(!sdma_allocate(NULL, 0, N) && !sdma_bind_text(d, NULL, NULL, NULL, 0) && sdma_address(NULL) == 0);
  sdma_unbind(NULL);
  sdma_copies_free(NULL);
  sdma_free(NULL);
  sdma_close(NULL);
  /* A handle outlives the one that it was made with. */
  sdma_memory* last = sdma_allocate(d, SDMA_HOST, N);
  sdma_close(d);
  memset(sdma_host(last), 1, N);
  sdma_free(last);
  if (!wrong) puts("good");
  return wrong != 0;
}
