import Synchronization

/// Threads to whom the open of a file without a name was refused once.
///
/// The kernel opens a file by a name that it remembers, and another mount may have taken that name away a moment ago. A
/// program may also mean the file without a name, by /proc/self/fd. The first request is answered with ESTALE, so that
/// the kernel resolves the path once more and asks for each name (fs/namei.c, `do_filp_open`, `LOOKUP_REVAL`). A name
/// that is gone leads elsewhere then, and who means the file asks for it again.
final class UnlinkedOpens: Sendable {
  /// Most threads to remember.
  private static let limit = 1024

  private let refused = Mutex<[Int32: Int64]>([:])

  /// Whether the thread may open the file though it has no name: it was refused that right before, or is not known.
  func allows(_ ino: Int64, by thread: Int32) -> Bool {
    refused.withLock { refused in
      guard thread != 0, refused[thread] != nil else { return thread == 0 }
      return refused.removeValue(forKey: thread) == ino
    }
  }

  /// Notes that the thread was refused the file.
  func refuse(_ ino: Int64, to thread: Int32) {
    refused.withLock { refused in
      if refused.count >= Self.limit { refused = [:] }
      refused[thread] = ino
    }
  }
}
