// Declarations that Swift's Glibc module lacks, since it is compiled without _GNU_SOURCE.
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/// fallocate(2).
int fallocate(int descriptor, int mode, off_t offset, off_t length);

/// renameat2(2).
int renameat2(int folder, const char *name, int other_folder, const char *other_name, unsigned int flags);

/// setfsuid(2), setfsgid(2): of the calling thread.
int setfsuid(uid_t user);
int setfsgid(gid_t group);

/// setgroups(2) of the calling thread: the function of that name changes the groups of all threads.
static inline int clinux_set_own_groups(int count, const gid_t *groups) {
  return (int)syscall(SYS_setgroups, count, groups);
}

/// O_PATH of open(2).
static const int clinux_path_only = 010000000;
