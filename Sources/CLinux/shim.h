// What Swift's Glibc module does not declare, since it is compiled without _GNU_SOURCE.
#include <linux/falloc.h>
#include <sys/types.h>

/// fallocate(2).
int fallocate(int descriptor, int mode, off_t offset, off_t length);
