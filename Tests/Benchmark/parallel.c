// Several clients at once, for mount-scripts/benchmark --parallel.
//
// parallel PHASE CLIENTS SECONDS   works in the current folder and prints how many operations a second all clients made.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { small = 4096, piece = 65536, files = 1000, saved = 200, most = 64 };

static uint64_t state;
static unsigned char *buffer;
static int large = -1;
static long pieces;

static uint64_t next_random(void) {  // SplitMix64
  uint64_t word = state += 0x9E3779B97F4A7C15;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(int succeeded, const char *what) {
  if (!succeeded) err(1, "%s", what);
}

static void write_file(const char *path) {
  int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  check(fd >= 0, path);
  for (int i = 0; i < small / 8; i++) ((uint64_t *)buffer)[i] = next_random();
  check(write(fd, buffer, small) == small && close(fd) == 0, path);
}

static void open_and_read(int client, long number) {
  char name[64];
  snprintf(name, sizeof name, "f%06ld", (long)(next_random() % files));
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  check(fd >= 0 && read(fd, buffer, small) == small && close(fd) == 0, name);
}

static void read_piece(int client, long number) {
  off_t offset = (off_t)(next_random() % (uint64_t)pieces) * piece;
  check(pread(large, buffer, piece, offset) == piece, "pread");
}

static void create(int client, long number) {
  char name[64];
  snprintf(name, sizeof name, "c%d-%d-%ld", getpid(), client, number);
  write_file(name);
}

static void safe_save(int client, long number) {
  char temporary[64], name[64];
  snprintf(temporary, sizeof temporary, ".s%d.tmp", client);
  snprintf(name, sizeof name, "s%d-%ld", client, number % saved);
  write_file(temporary);
  check(rename(temporary, name) == 0, "rename");
}

static const struct {
  const char *name;
  void (*run)(int client, long number);
} phases[] = {{"open-read", open_and_read}, {"random-read", read_piece}, {"create", create}, {"safe-save", safe_save}};

int main(int argc, char **argv) {
  if (argc != 4) errx(64, "usage: parallel PHASE CLIENTS SECONDS");
  void (*run)(int, long) = NULL;
  for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
    if (strcmp(phases[i].name, argv[1]) == 0) run = phases[i].run;
  int clients = atoi(argv[2]);
  if (!run || clients < 1 || clients > most) errx(64, "no phase %s, or not 1 to %d clients", argv[1], most);
  double seconds = atof(argv[3]), start = now() + 0.05;
  long *counts = mmap(NULL, most * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(counts != MAP_FAILED, "mmap");
  for (int client = 0; client < clients; client++) {
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child > 0) continue;
    state = (uint64_t)(start * 1e9) ^ (uint64_t)getpid() << 32;
    buffer = aligned_alloc(small, piece);
    if (run == read_piece) {
      // Past the page cache: each read is a request.
      large = open("large", O_RDONLY | O_DIRECT | O_CLOEXEC);
      check(large >= 0, "large");
      pieces = lseek(large, 0, SEEK_END) / piece;
    }
    while (now() < start) {}
    long count = 0;
    for (; now() < start + seconds; count++) run(client, count);
    counts[client] = count;
    _exit(0);
  }
  int status, failed = 0;
  while (wait(&status) > 0) failed |= status;
  if (failed) return 1;
  long total = 0;
  for (int client = 0; client < clients; client++) total += counts[client];
  printf("%.1f\n", (double)total / seconds);
}
