#ifndef SHEAF_CTESTSYSTEM_H
#define SHEAF_CTESTSYSTEM_H
#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/xattr.h>

/// `O_NOATIME` and `O_DIRECT`.
extern const int sheaf_test_no_access_time, sheaf_test_direct;

/// Gives the calling thread alone its own umask and working directory: unshare(CLONE_FS).
int sheaf_test_own_umask(mode_t mask);

/// Makes the calling thread alone act as another user for ever, without glibc's broadcast to all threads.
/// Returns 0, or -1 with errno.
int sheaf_test_become(uid_t uid, gid_t gid, const gid_t *groups, size_t count);

/// Gives the calling thread alone these supplementary groups. Returns 0, or -1 with errno.
int sheaf_test_set_groups(const gid_t *groups, size_t count);

/// Takes a capability (a number of capabilities(7)) from the calling thread alone, for ever. Returns 0, or -1 with
/// errno.
int sheaf_test_drop_capability(int number);

/// A descriptor that becomes readable when the process ends, or -1 with errno.
int sheaf_test_pidfd(pid_t pid);

/// Freezes an ext4 or XFS file system as a power cut would: EXT4_IOC_SHUTDOWN without flushing the journal.
int sheaf_test_power_cut(int descriptor);

/// `renameat2`, both paths relative to `folder`.
int sheaf_test_rename(int folder, const char *from, const char *to, unsigned flags);

/// One write that is durable when it returns: `pwritev2` with RWF_DSYNC.
ssize_t sheaf_test_write_synchronously(int descriptor, const void *bytes, size_t count);

/// Asynchronous writes of 64 KiB each, up to 16 at a time, by `io_submit`; returns when all are done, with the bytes
/// written or -1 with errno.
ssize_t sheaf_test_write_asynchronously(int descriptor, const void *bytes, size_t count, off_t offset);

/// Opens what `path` led to after it was unlinked: `name_to_handle_at`, `unlink` and `open_by_handle_at`. Returns a
/// descriptor, or -1 with errno.
int sheaf_test_unlink_and_open_handle(const char *path);

/// `fallocate`.
int sheaf_test_allocate(int descriptor, int mode, off_t offset, off_t length);

/// `copy_file_range` between the offsets given.
ssize_t sheaf_test_copy_range(int from, off_t offset, int to, off_t target_offset, size_t count);

/// A pipe that programs started later do not inherit: `pipe2` with O_CLOEXEC.
int sheaf_test_pipe(int ends[2]);

/// The folder in which a program starts: `posix_spawn_file_actions_addchdir_np`.
int sheaf_test_spawn_folder(posix_spawn_file_actions_t *actions, const char *path);

/// The symbolic name of an errno, or null.
const char *sheaf_test_errno_name(int code);

/// Binds a stream socket to `path` and listens; returns the descriptor, or -1 with errno.
int sheaf_test_listen(const char *path);

/// Connects a stream socket to `path`; returns the descriptor, or -1 with errno.
int sheaf_test_connect(const char *path);
#endif
