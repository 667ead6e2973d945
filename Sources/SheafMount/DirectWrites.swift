import Fuse
import SheafLibrary
import Synchronization

/// New files that their makers write past the page cache (`FOPEN_DIRECT_IO`).
///
/// Before the first write to a file through its pages the kernel asks for `security.capability`, and what is written is
/// copied once more and kept twice. Who makes a file and cannot read it by that handle gains nothing by pages. But a
/// direct write forgets the pages of its range before it is sent (fs/fuse/file.c, `fuse_direct_io`), so that a page read
/// meanwhile would stay as it was for good. So
/// 1. only what is new is written like this: nobody can have pages of it;
/// 2. until the last handle that can write is released, every other handle is direct, too (``opens(_:_:_:)``);
/// 3. pages get there by mappings, sendfile(2) and splice(2) alone, and after each write to a file that somebody else has
///    opened, the kernel forgets them before write(2) returns (``wrote(_:)``), as kernels since 2026 do by themselves ("fuse:
///    invalidate the page cache after direct write");
/// 4. what the kernel does for writes through pages is done with these: `security.capability` goes, and what was opened or
///    written with `O_DSYNC` is durable before the answer.
///
/// Source: Linux Documentation/filesystems/fuse/fuse-io.rst.
final class DirectWrites: Sendable {
  private struct File {
    /// Handles that can write.
    var writers: Set<FileHandle>
    /// Whether it was opened by others than who made it: they may have it mapped.
    var isShared = false
  }

  private let files = Mutex<[Int64: File]>([:])
  private let isOffered = Atomic(false)
  private let invalidator: Invalidator

  init(invalidator: Invalidator) {
    self.invalidator = invalidator
  }

  /// Notes what the kernel offers: where a file that is written directly cannot be mapped shared, none is.
  func connect(_ connection: ConnectionInfo) {
    isOffered.store(connection.capabilities.contains(.directIOMappings), ordering: .releasing)
  }

  /// Whether who made a new file is to write it directly.
  func begins(_ ino: Int64, _ flags: OpenFlags, _ handle: FileHandle) -> Bool {
    guard isOffered.load(ordering: .acquiring), flags.isWritable, !flags.isReadable else { return false }
    files.withLock { $0[ino] = File(writers: [handle]) }
    return true
  }

  /// Whether who opens a file has to use it directly.
  func opens(_ ino: Int64, _ flags: OpenFlags, _ handle: FileHandle) -> Bool {
    files.withLock { files in
      guard files[ino] != nil else { return false }
      files[ino]?.isShared = true
      if flags.isWritable { files[ino]?.writers.insert(handle) }
      return true
    }
  }

  /// Notes that a handle is gone.
  func releases(_ ino: Int64, _ handle: FileHandle) {
    files.withLock { files in
      files[ino]?.writers.remove(handle)
      if files[ino]?.writers.isEmpty ?? false { files[ino] = nil }
    }
  }

  /// Whether the file is written directly.
  func contains(_ ino: Int64) -> Bool { files.withLock { $0[ino] != nil } }

  /// Notes that a file was written by write(2), which returns after this.
  func wrote(_ ino: Int64) {
    if files.withLock({ $0[ino]?.isShared ?? false }) { invalidator.post([.contents(ino)], patience: 20) }
  }
}
