#define _GNU_SOURCE
#include "CFuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

const uint64_t cfuse_init_parallel_dirops = FUSE_PARALLEL_DIROPS;
const uint64_t cfuse_init_handle_killpriv_v2 = FUSE_HANDLE_KILLPRIV_V2;
// Of <linux/fuse.h>, protocol 7.39 (Linux 6.6).
const uint64_t cfuse_init_direct_io_allow_mmap = 1ULL << 36;

struct fuse_session *cfuse_session_new(struct fuse_args *args, const struct fuse_lowlevel_ops *operations,
                                       struct cfuse_context *context) {
  return fuse_session_new(args, operations, sizeof(*operations), context);
}

static ssize_t device_read(int fd, void *buffer, size_t length, void *userdata) {
  struct cfuse_context *context = userdata;
  ssize_t count = read(fd, buffer, length);
  // The connection ended while a request was on its way here (fs/fuse/dev.c, fuse_dev_do_read), or somebody aborted it:
  // to libfuse only ENODEV is an end without error.
  if (count < 0 && errno == ECONNABORTED) errno = ENODEV;
  if (count >= (ssize_t)(sizeof(struct fuse_in_header) + 4 * sizeof(uint32_t))) {
    struct fuse_in_header *header = buffer;
    if (__builtin_expect(header->opcode == FUSE_TMPFILE, 0)) {
      const char *name = (const char *)(header + 1) + sizeof(struct fuse_create_in);
      if (count > name - (const char *)buffer && *name == '/') header->opcode = FUSE_CREATE;
    }
    if (header->opcode == FUSE_INIT) {
      const struct fuse_init_in *init = (const void *)(header + 1);
      context->offered_init_flags = init->flags;
      if (init->flags & FUSE_INIT_EXT && count >= (ssize_t)(sizeof(*header) + sizeof(*init)))
        context->offered_init_flags |= (uint64_t)init->flags2 << 32;
      atomic_store(&context->init_unique, header->unique);
    }
  }
  return count;
}

static ssize_t device_writev(int fd, struct iovec *vector, int count, void *userdata) {
  struct cfuse_context *context = userdata;
  uint64_t due = atomic_load_explicit(&context->init_unique, memory_order_relaxed);
  if (__builtin_expect(due == 0, 1)) return writev(fd, vector, count);

  const struct fuse_out_header *header = vector[0].iov_base;
  if (header->unique != due) return writev(fd, vector, count);
  atomic_store(&context->init_unique, 0);
  int accepted = header->error == 0 && count > 1 && vector[1].iov_len >= sizeof(uint32_t) * 4;
  if (accepted) {
    struct fuse_init_out *answer = vector[1].iov_base;
    uint64_t extra = context->extra_init_flags & context->offered_init_flags;
    answer->flags |= (uint32_t)extra;
    if (extra >> 32 != 0 && vector[1].iov_len >= sizeof(*answer)) {
      answer->flags |= FUSE_INIT_EXT;
      answer->flags2 |= (uint32_t)(extra >> 32);
    }
  }
  ssize_t written = writev(fd, vector, count);
  if (accepted && written >= 0) {
    int saved = errno;
    context->initialized(context->handler);
    errno = saved;
  }
  return written;
}

int cfuse_session_adopt_device(struct fuse_session *session) {
  // No splice functions: they would let libfuse splice, which costs two system calls and gains nothing where the
  // contents are wanted in memory.
  const struct fuse_custom_io device = {.writev = device_writev, .read = device_read};
  return fuse_session_custom_io(session, &device, fuse_session_fd(session));
}

int cfuse_notify_inc_epoch(struct fuse_session *session) {
  // FUSE_NOTIFY_INC_EPOCH of <linux/fuse.h>, protocol 7.44 (Linux 6.16).
  const struct fuse_out_header notification = {.len = sizeof(notification), .error = 8};
  ssize_t written = write(fuse_session_fd(session), &notification, sizeof(notification));
  return written < 0 ? -errno : 0;
}

int cfuse_notify_nothing_stored(struct fuse_session *session, uint64_t node) {
  struct {
    struct fuse_out_header header;
    struct fuse_notify_store_out store;
  } notification = {
      .header = {.len = sizeof(notification), .error = FUSE_NOTIFY_STORE},
      .store = {.nodeid = node},
  };
  ssize_t written = write(fuse_session_fd(session), &notification, sizeof(notification));
  // EINVAL says that the node is known and is no regular file.
  return written < 0 && errno != EINVAL ? -errno : 0;
}

static _Atomic(void (*)(enum fuse_log_level, const char *)) log_sink;

static void log_formatted(enum fuse_log_level level, const char *format, va_list arguments) {
  char message[1024];
  vsnprintf(message, sizeof(message), format, arguments);
  void (*sink)(enum fuse_log_level, const char *) = atomic_load(&log_sink);
  if (sink != NULL) sink(level, message);
}

void cfuse_set_log(void (*sink)(enum fuse_log_level level, const char *message)) {
  atomic_store(&log_sink, sink);
  fuse_set_log_func(log_formatted);
}

int cfuse_memory_file(void) { return memfd_create("fuse", MFD_CLOEXEC); }

int cfuse_part_with_files(void) { return close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE); }

pid_t cfuse_thread(void) { return gettid(); }

const int cfuse_path_only = O_PATH;

int cfuse_make_folder(int folder, const char *name, mode_t mode, uid_t user, gid_t group) {
  if (user == geteuid()) return mkdirat(folder, name, mode);
  int count = getgroups(0, NULL);
  gid_t *own_groups = count < 0 ? NULL : calloc(count + 1, sizeof(gid_t));
  if (own_groups == NULL) return -1;
  int result = -1, error = EPERM;
  // setgroups(2) of this thread alone: that of the C library changes the groups of all threads.
  if (getgroups(count, own_groups) == count && syscall(SYS_setgroups, 0, NULL) == 0) {
    gid_t own_group = setfsgid(group);
    uid_t own_user = setfsuid(user);
    // That changes nothing, and tells what is so.
    if (setfsuid(-1) == (int)user && setfsgid(-1) == (int)group) {
      result = mkdirat(folder, name, mode);
      error = errno;
    }
    setfsuid(own_user);
    setfsgid(own_group);
    syscall(SYS_setgroups, count, own_groups);
  }
  free(own_groups);
  errno = error;
  return result;
}

int cfuse_limit_privileges(uint64_t kept) {
  for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
    int isKept = number < 64 && kept >> number & 1;
    if (!isKept && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) return -1;
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int cfuse_device(int folder, const char *name, uint32_t *major, uint32_t *minor) {
  struct statx status;
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if (statx(folder, name, flags, 0, &status) != 0) return -1;
  *major = status.stx_dev_major;
  *minor = status.stx_dev_minor;
  return 0;
}

int cfuse_touch(int folder, const char *name) {
  const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}};
  return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW);
}

int cfuse_exchange(int folder, const char *name, int other_folder, const char *other_name) {
  return renameat2(folder, name, other_folder, other_name, RENAME_EXCHANGE);
}
