#ifndef SHEAF_CFUSE_H
#define SHEAF_CFUSE_H
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include <fuse3/fuse_lowlevel.h>
#endif
