// The timed loops of mount-scripts/benchmark. C, so that what is measured is the file system and not the one who asks.
//
// driver PHASE COUNT   works in the current folder and prints the seconds that the phase took and its operations.
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { small = 4096, record = 512, block = 1 << 20 };

static uint64_t state;
static unsigned char buffer[block];

static uint64_t next_random(void) {  // SplitMix64
  uint64_t word = state += 0x9E3779B97F4A7C15;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

// Makes each page of the buffer one that was never written before, so that nobody gains by finding duplicates.
static void renew(size_t length) {
  for (size_t offset = 0; offset < length; offset += record) {
    uint64_t word = next_random();
    memcpy(buffer + offset, &word, sizeof word);
  }
}

static char *name(const char *prefix, long number) {
  static char names[2][64];
  static int which;
  which = !which;
  snprintf(names[which], sizeof names[which], "%s%06ld", prefix, number);
  return names[which];
}

static void check(int succeeded, const char *what) {
  if (!succeeded) err(1, "%s", what);
}

static int opened(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0644);
  if (fd < 0) err(1, "open %s", path);
  return fd;
}

static void write_file(const char *path, int flags, size_t length) {
  int fd = opened(path, flags);
  renew(length);
  check(write(fd, buffer, length) == (ssize_t)length, "write");
  check(close(fd) == 0, "close");
}

static void create(long count) {
  for (long i = 0; i < count; i++) write_file(name("f", i), O_CREAT | O_EXCL | O_WRONLY, small);
}

static void stat_all(long count) {
  struct stat status;
  for (long i = 0; i < count; i++) check(stat(name("f", i), &status) == 0, "stat");
}

// A tenth of the names, ten times each, as compilers and shells ask for the same absent names again and again.
static void stat_missing(long count) {
  struct stat status;
  for (long i = 0; i < count; i++) check(stat(name("absent", i % (count / 10)), &status) != 0, "stat of an absent name");
}

static void read_all(long count) {
  for (long i = 0; i < count; i++) {
    int fd = opened(name("f", i), O_RDONLY);
    check(read(fd, buffer, small) == small, "read");
    check(close(fd) == 0, "close");
  }
}

static void list_and_stat(long count) {
  DIR *folder = opendir(".");
  check(folder != NULL, "opendir");
  long found = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL; found++) {
    struct stat status;
    check(fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0, "fstatat");
  }
  closedir(folder);
  if (found < count) errx(1, "%ld of %ld entries listed", found, count);
}

static void set_attributes(long count) {
  for (long i = 0; i < count; i++) check(setxattr(name("f", i), "user.colour", "green", 5, 0) == 0, "setxattr");
}

static void get_attributes(long count) {
  char value[64];
  for (long i = 0; i < count; i++) check(getxattr(name("f", i), "user.colour", value, sizeof value) == 5, "getxattr");
}

static void safe_save(long count) {
  for (long i = 0; i < count; i++) {
    write_file(".f.tmp", O_CREAT | O_EXCL | O_WRONLY, small);
    check(rename(".f.tmp", name("f", i)) == 0, "rename");
  }
}

static void append(long count) {
  int fd = opened("log", O_CREAT | O_WRONLY | O_APPEND);
  for (long i = 0; i < count; i++) {
    renew(record);
    check(write(fd, buffer, record) == record, "write");
    check(fsync(fd) == 0, "fsync");
  }
  check(close(fd) == 0, "close");
}

static void rename_all(long count) {
  for (long i = 0; i < count; i++) check(rename(name("f", i), name("g", i)) == 0, "rename");
}

static void unlink_all(long count) {
  for (long i = 0; i < count; i++) check(unlink(name("g", i)) == 0, "unlink");
}

static void make_folders(long count) {
  for (long i = 0; i < count; i++) check(mkdir(name("d", i), 0755) == 0, "mkdir");
}

static void write_large(long blocks) {
  int fd = opened("large", O_CREAT | O_WRONLY | O_TRUNC);
  for (long i = 0; i < blocks; i++) {
    renew(block);
    check(write(fd, buffer, block) == block, "write");
  }
  check(close(fd) == 0, "close");
}

static void read_large(long blocks) {
  int fd = opened("large", O_RDONLY);
  for (long i = 0; i < blocks; i++) check(read(fd, buffer, block) == block, "read");
  check(close(fd) == 0, "close");
}

static void write_at_random(long count, int syncs) {
  int fd = opened("large", O_WRONLY);
  struct stat status;
  check(fstat(fd, &status) == 0, "fstat");
  for (long i = 0; i < count; i++) {
    renew(small);
    off_t offset = (off_t)(next_random() % (uint64_t)(status.st_size / small)) * small;
    check(pwrite(fd, buffer, small, offset) == small, "pwrite");
    if (syncs) check(fsync(fd) == 0, "fsync");
  }
  check(close(fd) == 0, "close");
}

static void write_pages(long count) { write_at_random(count, 0); }
static void write_and_sync_pages(long count) { write_at_random(count, 1); }

static const struct {
  const char *name;
  void (*run)(long count);
} phases[] = {
    {"create", create},
    {"stat-first", stat_all},
    {"stat-again", stat_all},
    {"stat-missing", stat_missing},
    {"read", read_all},
    {"list", list_and_stat},
    {"list-again", list_and_stat},
    {"setxattr", set_attributes},
    {"getxattr", get_attributes},
    {"safe-save", safe_save},
    {"append-fsync", append},
    {"rename", rename_all},
    {"unlink", unlink_all},
    {"mkdir", make_folders},
    {"write-large", write_large},
    {"read-cold", read_large},
    {"read-hot", read_large},
    {"random-write", write_pages},
    {"random-write-fsync", write_and_sync_pages},
};

int main(int argc, char **argv) {
  if (argc != 3) errx(64, "usage: driver PHASE COUNT");
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  state = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + (uint64_t)getpid();
  for (size_t offset = 0; offset < block; offset += 8) {
    uint64_t word = next_random();
    memcpy(buffer + offset, &word, sizeof word);
  }
  long count = atol(argv[2]);
  for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
    if (strcmp(phases[i].name, argv[1]) != 0) continue;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    phases[i].run(count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f %ld\n", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec), count);
    return 0;
  }
  errx(64, "no phase %s", argv[1]);
}
