internal import CLinux
internal import Glibc
internal import SheafModel
internal import Synchronization

/// Room on the disk for the growth of the library's file, which is there before the log is copied into it.
///
/// A full log can only be copied, and its own room be had back, if the file can grow; and other programs fill the disk
/// at any moment. So after each commit the file gets the blocks that copying its pages will need, behind its end. It
/// gets no longer by that, and SQLite takes no notice. Once all of the log is copied, SQLite cuts off what was left.
final class FileRoom: Sendable {
  private struct State {
    /// -1 once closed.
    var descriptor: Int32
    /// Bytes of the file once all of the log is copied.
    var end: Int64 = 0

    /// Size of the file, and what it lacks of blocks for all that the log holds.
    var facts: (size: Int64, lacking: Int64)? {
      var status = stat()
      guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
      let size = Int64(status.st_size)
      return (size, max(0, end - max(size, Int64(status.st_blocks) * 512)))
    }
  }

  private let state: Mutex<State>

  private static let pageBytes: Int64 = 4096
  /// Bytes for which it is tried whether the disk has room for them. If it has not, the attempt uses up what is left.
  private static let triedRoom: Int64 = 1 << 20

  /// - Throws: ``SheafError``.
  init(of library: String) throws(SheafError) {
    let opened = LibraryFolder.open(library, O_RDWR)
    guard opened >= 0 else { throw SheafError(systemError: errno, subject: library) }
    state = Mutex(State(descriptor: opened))
  }

  deinit { close() }

  /// To be called after the last connection is closed: this drops the POSIX locks that SQLite has on the file.
  func close() {
    state.withLock { state in
      if state.descriptor >= 0 { Glibc.close(state.descriptor) }
      state.descriptor = -1
    }
  }

  /// Allocates what a file of so many pages lacks. Where the disk has no room for that, or cannot allocate blocks, the
  /// commit goes on without.
  func allocate(pages: Int64) {
    state.withLock { state in
      state.end = pages * Self.pageBytes
      guard let facts = state.facts, facts.lacking > 0 else { return }
      guard facts.lacking <= Self.triedRoom || hasRoom(for: facts.lacking, state.descriptor) else { return }
      // Blocks that are there already stay as they are.
      _ = fallocate(state.descriptor, FALLOC_FL_KEEP_SIZE, off_t(facts.size), off_t(state.end - facts.size))
    }
  }

  /// Bytes that the disk must still have room for when the log is copied.
  var lackingBytes: Int64 { state.withLock { $0.facts?.lacking ?? 0 } }

  private func hasRoom(for bytes: Int64, _ descriptor: Int32) -> Bool {
    var disk = statvfs()
    return fstatvfs(descriptor, &disk) == 0 && Int64(disk.f_bavail) * Int64(disk.f_frsize) >= bytes
  }
}
