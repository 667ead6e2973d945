import Fuse
import SheafLibrary
import Synchronization

/// New files that their makers write past the page cache (`FOPEN_DIRECT_IO`).
///
/// Before the first write to a file through its pages the kernel asks for `security.capability`, and the bytes are
/// copied once more and kept twice. A program that makes a file and cannot read it by that handle gains nothing by
/// pages. But the kernel drops the pages of a direct write's range before it sends the write (fs/fuse/file.c,
/// `fuse_direct_io`), so a page that somebody reads meanwhile would stay as it was for good. So
/// 1. only new files are written like this: nobody can have pages of them;
/// 2. until the last handle that can write is released, every other handle is direct, too (``opens(_:_:_:)``);
/// 3. pages get there by mappings, sendfile(2) and splice(2) alone, and after each write to a file that somebody else
///    has opened, the kernel is told to drop them before write(2) returns (``wrote(_:)``), as kernels since 2026 do by
///    themselves ("fuse: invalidate the page cache after direct write");
/// 4. the file system does for these writes what the kernel does for writes through pages: it removes
///    `security.capability`, and makes writes with `O_DSYNC` durable before it answers.
///
/// Source: Linux Documentation/filesystems/fuse/fuse-io.rst.
final class DirectWrites: Sendable {
  private struct File {
    /// Handles that can write.
    var writers: Set<FileHandle>
    /// Whether others than its maker opened it, who may have it mapped.
    var isShared = false
  }

  private let files = Mutex<[Int64: File]>([:])
  private let isOffered = Atomic(false)
  private let invalidator: Invalidator

  init(invalidator: Invalidator) {
    self.invalidator = invalidator
  }

  /// Notes the kernel's offer: if it cannot map directly written files shared, no file is written directly.
  func connect(_ connection: ConnectionInfo) {
    isOffered.store(connection.capabilities.contains(.directIOMappings), ordering: .releasing)
  }

  /// Whether the maker of a new file writes it directly.
  func begins(_ ino: Int64, _ flags: OpenFlags, _ handle: FileHandle) -> Bool {
    guard isOffered.load(ordering: .acquiring), flags.isWritable, !flags.isReadable else { return false }
    files.withLock { $0[ino] = File(writers: [handle]) }
    return true
  }

  /// Whether an open file has to be used directly, too.
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

  /// Notes a write(2) to a file, before that returns.
  func wrote(_ ino: Int64) {
    if files.withLock({ $0[ino]?.isShared ?? false }) { invalidator.post([.contents(ino)], patience: 20) }
  }
}
