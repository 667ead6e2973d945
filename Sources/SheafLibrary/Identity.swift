import Foundation
import SheafModel

/// Which entry is which document, whatever dance of temporary files a program saves it by.
///
/// Identity hangs on the entry that people mean, not on the inode that an editor wrote (rule 4 of DESIGN.md):
///
/// 1. A file is *young* until 15 s have passed since it was made. A document is *established* for a program unless that
///    same program made it while it is young.
/// 2. `rename(new → doc)` over an established document: `doc` keeps id, history, labels and user xattrs (those that `new`
///    set win) and, where `new` is young and nobody called chmod on it, its mode. It takes the contents as its next
///    version. A young `new` dissolves; an older one leaves its own history among the deleted.
/// 3. `rename(doc → X)` and `unlink(doc)` of an established document are *remembered* for 15 s or until the program
///    ends. The same program making `doc` again in that time, by create or by rename, makes the same document: `X`
///    becomes a plain file with the old contents, a deletion is undone.
/// 4. Another program that makes a remembered name makes a new document.
/// 5. All names of an inode are one item, its place the oldest name. A rename over the oldest name keeps the identity
///    there, and the other names become a document of their own; over a younger name it makes only that name new.
/// 6. RENAME_EXCHANGE of two regular files of which one is young swaps contents and leaves the ids on their names.
/// 7. A young file that its own program unlinks leaves no trace.
/// 8. Names of temporary, lock and backup files make no events, until they are renamed to a name that is none.
///
/// ```
///               unlink, rename away                  same program makes the name
///   established ──────────────────► remembered ─────────────────────────────────► established (same id)
///        ▲                              │ 15 s, program ended, restart
///        │ 15 s                         ▼
///      young ── own program unlinks ─► gone          settled: deleted, or moved (event logged)
/// ```
struct Identity {
  /// Nanoseconds for which a file is young and a name remembered, as NTFS's name tunnelling.
  static let window: Int64 = 15_000_000_000
  /// Files and names remembered at most; the oldest are settled early.
  static let limit = 4096

  /// A name that an established document lost.
  struct Remembered {
    let item: Int64
    /// The inode that had the name: still linked elsewhere after a rename, deleted after an unlink.
    let ino: Int64
    let thread: Int32
    let time: Timestamp
  }

  private struct Youth {
    let thread: Int32
    let time: Timestamp
  }

  private struct Name: Hashable {
    let parent: Int64
    let name: [UInt8]
  }

  private var young: [Int64: Youth] = [:]
  private var remembered: [Name: Remembered] = [:]

  mutating func born(_ ino: Int64, thread: Int32, at time: Timestamp) {
    if young.count >= Self.limit {
      young = young.filter { time.nanoseconds - $0.value.time.nanoseconds < Self.window / 4 }
    }
    if young.count < Self.limit { young[ino] = Youth(thread: thread, time: time) }
  }

  /// Whether the file was made within the window, by whatever program.
  func isYoung(_ ino: Int64, at time: Timestamp) -> Bool {
    young[ino].map { time.nanoseconds - $0.time.nanoseconds < Self.window } ?? false
  }

  /// Whether the program of `thread` made the file within the window.
  func isYoung(_ ino: Int64, for thread: Int32, at time: Timestamp) -> Bool {
    guard isYoung(ino, at: time), let youth = young[ino] else { return false }
    return Caller.sameProcess(youth.thread, thread)
  }

  /// Exchanges the ages of two files whose contents changed places.
  mutating func swap(_ left: Int64, _ right: Int64) { (young[left], young[right]) = (young[right], young[left]) }

  mutating func forget(_ ino: Int64) { young[ino] = nil }

  mutating func remember(
    _ item: Int64, ino: Int64, lost parent: Int64, _ name: [UInt8], thread: Int32, at time: Timestamp
  ) {
    if remembered.count >= Self.limit {
      remembered = remembered.filter { time.nanoseconds - $0.value.time.nanoseconds < Self.window / 4 }
    }
    guard remembered.count < Self.limit, thread != 0 else { return }
    remembered[Name(parent: parent, name: name)] = Remembered(item: item, ino: ino, thread: thread, time: time)
  }

  /// The document that had the name, if the program of `thread` took it away within the window.
  func lost(_ parent: Int64, _ name: [UInt8], thread: Int32, at time: Timestamp) -> Remembered? {
    guard let memory = remembered[Name(parent: parent, name: name)],
      time.nanoseconds - memory.time.nanoseconds < Self.window, Caller.sameProcess(memory.thread, thread)
    else { return nil }
    return memory
  }

  /// Forgets the name: it was made again, or its document is gone.
  mutating func settle(_ parent: Int64, _ name: [UInt8]) { remembered[Name(parent: parent, name: name)] = nil }

  mutating func settle(item: Int64) { remembered = remembered.filter { $0.value.item != item } }

  /// Whether nothing is young and no name remembered.
  var isEmpty: Bool { young.isEmpty && remembered.isEmpty }

  /// Forgets what is older than the window.
  mutating func expire(at time: Timestamp) {
    young = young.filter { time.nanoseconds - $0.value.time.nanoseconds < Self.window }
    remembered = remembered.filter { time.nanoseconds - $0.value.time.nanoseconds < Self.window }
  }

  // MARK: - Names of files that are no documents

  /// Whether `name` is one that programs give to temporary, lock, probe and backup files.
  static func isTemporary(_ name: [UInt8]) -> Bool {
    let text = String(decoding: name, as: UTF8.self)
    if text.hasSuffix("~") || text.hasPrefix(".#") || (text.hasPrefix("#") && text.hasSuffix("#")) { return true }
    if isScratch(name) { return true }
    return text.hasSuffix(".bak")
  }

  /// Whether `name` is one of a file that holds nothing to keep: locks, probes and swap files.
  static func isScratch(_ name: [UInt8]) -> Bool {
    let text = String(decoding: name, as: UTF8.self)
    if text == "4913" || text.hasPrefix(".~lock.") || text.hasPrefix(".goutputstream-") { return true }
    guard text.hasPrefix("."), let dot = text.lastIndex(of: ".") else { return false }
    let ending = text[text.index(after: dot)...]
    return ending.count == 3 && ending.hasPrefix("sw") && ending.allSatisfy { $0.isASCII && $0.isLetter }
  }
}
