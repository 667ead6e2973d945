import Foundation
import SheafModel

/// Which entry is which document, whatever dance of temporary files a program saves it by.
///
/// Identity hangs on the entry that people mean, not on the inode that an editor wrote (rule 4 of
/// docs/ARCHITECTURE.md). A program is a process (thread group); its name is no criterion. Names of files decide
/// doubtful cases only (``FileRole``).
///
/// What a file is:
/// 1. A file is *young* until 15 s after it was made or closed last, unless it got *known* before: someone read its id,
///    or a command named it. It is *own* to the program that made it, until another one gives it a name. Every file
///    that is not young is *established*, and so is a young one for every program but its own.
/// 2. An own file is *proved* when it was closed or synced with contents in it, and had a name that looks like no
///    temporary file's by then, or was given one after that. It stays proved under other names, while it is open again,
///    being written, and when it is emptied. An own file is its maker's *alone* until another program saves contents in
///    it or opens it to write, or another account has changes in it.
///
/// What becomes of documents:
/// 3. `rename(new → doc)` over a document that is established, proved or not its maker's alone, and has not the name of
///    a lock, probe or autosave file: `doc` keeps id, history, labels and user xattrs (those that `new` set win), and
///    takes the contents as its next version. A young or quiet `new` dissolves in it; another one's history stays among
///    the deleted, and the event tells where the contents came from (the other one's deletion is told only where that
///    was in another share: who saw it there hears of nothing else). So does the history of a `new` that saved other
///    contents than these before, unless it is own and not proved, or young with a passing name and neither that nor
///    any under which it was closed the name of a backup. Where several accounts wrote to it, it has that history in
///    any case.
/// 4. The mode stays `doc`'s too where `new` is young and nobody called chmod on it; but not where `doc` is own itself
///    and nobody called chmod on that either: one program that makes two files and renames one over the other sees what
///    rename(2) says, since no person can have meant the first file's mode. Where `doc` is made again by open(2) with
///    0666 or 0777, its execute bits follow that (a version control tool makes scripts so); any narrower mode is
///    chosen.
/// 5. `rename(doc → X)` and `unlink(doc)` of an established document are *remembered* until 15 s passed, in memory. The
///    same program making `doc` again in that time, by open(2), by linking an own or renaming a young file there, makes
///    the same document: `X` becomes a document of its own with the old contents, a deletion is undone; but not where
///    `X` lies outside of the share that `doc` was in and has changed since, which nobody there is to see. A rename from
///    a temporary, lock or probe name is not remembered (`doc.tmp` renamed to `doc`, then `doc.tmp` made again, are two
///    saves), unless `X` is named after that (`doc.tmp~`). The same goes for a document whose contents another one took
///    by rule 3: a second backup of any name.
/// 6. An own file is remembered like that only if it is proved: after a rename where `X` is named after it or like a
///    temporary file, and after every unlink. An own file that is not proved, and its maker's alone, leaves no trace
///    when its maker unlinks it. One with the name of a lock, probe or autosave file counts as own for that for as long
///    as its maker lives, if nobody knows it; but not one that holds what a document left (rules 5, 9 and 16) and was
///    written since. All others are among the deleted, with every version: what a close or an fsync saved is found by
///    its name.
/// 7. Another program that makes a remembered name makes a new document: `rm a; echo > a` and `mv a b; cp c a` in a
///    script do. Moving an established document to the name (`rename(b → a)` in a swap through a third name, even in
///    one program) is a move: ids go with the entries; but not where `X` is named as the backup of `doc`
///    (`mv -b b doc`).
/// 8. `rename(doc → X)` onto a file that is quiet, or that is named as the backup of `doc`, moves `doc` over it, so
///    that a second save with a backup is the same as the first. (`X` stays among the deleted if it was established and
///    one of its versions is none of the latest of `doc`.)
/// 9. All names of an inode are one item, its place the oldest name. A rename over the oldest name keeps the identity
///    there, and the other names become a document of their own; over a younger name it makes only that name new.
/// 10. RENAME_EXCHANGE of two regular files swaps contents and leaves ids on their names if one of them is a document
///    and the other young. Age and fame decide which one is the young file, then who made it, then the names: a
///    temporary file's, or one that is made of the other's (`doc.x` of `doc`). Otherwise ids go with the entries.
/// 11. `rename(new → doc)` while one account is still writing `new`: the version that this makes ends when the writer
///    closes, and there is none before the first byte. What several accounts wrote to `new` are versions before that.
///
/// Which events there are:
/// 12. What a program makes is `created` under the name that it has when it is settled: renaming a young file that is
///    not proved, or that is named after its new name, or an own one that gets the name of a backup of a file beside
///    it, is part of making it; its saves are told with that name, too. Any other rename is an event.
/// 13. A file that has a temporary, lock or probe name then, or the name of a backup of a file beside it, or that the
///    old contents were left in under such a name, is *quiet*: a document without events, until it is renamed to a
///    name that is none.
/// 14. Records of what may be undone wait for the end of the program (and one second, for what a script does next), for
///     15 s, for the file to be known where they tell that it was made, or for room: not more than ``EventLog/limit``
///     wait. A program that deletes a thousand things without a second's pause is waited for until it pauses: its last
///     deletion may be that of the folder. A restart settles all, in favour of keeping history.
/// 15. A build tool that removes and makes hundreds of files goes by rules 5 to 7 like all: one process makes versions,
///    `rm` and `cc` make new documents, with the old ones among the deleted.
/// 16. `link(doc → X)` where `doc` is shared on its own and `X`, beside it, is named after it, makes `X` a document
///    with the same contents, as rule 9 would once `doc` is replaced: programs link the backup first, and hard links
///    never cross the border of a share.
///
/// ```
///            id read, named by a command, 15 s                unlink, rename away
///   young ─────────────────────────────────► established ─────────────────────────► remembered
///     │ own program unlinks it: proved ─────────────────────────────────────────────►   │  │
///     │                                            ▲    same program makes the name     │  │ 15 s, restart,
///     ▼ not proved                                 └────────────────────────────────────┘  ▼ another program
///   gone, no trace                                   remake(_:), takeOver(_:)       deleted or moved, event logged
/// ```
struct Identity {
  /// Nanoseconds for which a file is young and a name remembered, as NTFS's name tunnelling.
  static let window: Int64 = 15_000_000_000
  /// Files and names remembered at most; the oldest are forgotten early.
  static let limit = 16_384

  /// A name that a document lost.
  struct Remembered {
    let item: Int64
    /// The inode that had the name: still linked elsewhere after a rename, deleted after an unlink.
    let ino: Int64
    let process: Int32
    let time: Timestamp
    /// The mode that the file had under the name.
    let mode: UInt32
    /// The first of the item's waiting events that the action logged: taken back if the document returns. Nil where the
    /// action logged an event of another document.
    let event: Int64?
    /// Since when the document had had the name.
    let since: Timestamp
  }

  private struct YoungFile {
    /// The program that made it; 0 once another one gave it a name.
    var process: Int32
    var time: Timestamp
    /// Whether a program called chmod(2) on it, which then outweighs the mode of a document it replaces.
    var isModeChosen = false
    /// Whether it ever had a name that looks like no temporary file's.
    var hadLastingName = false
    /// Whether it was closed or synced with contents in it, under such a name or with one before.
    var wasProved = false
    /// Whether it was closed or synced with contents in it, under the name of a backup.
    var wasBackup = false
    /// Whether another program than its maker saved contents in it.
    var holdsOthersWork = false
    /// Whether it is remembered past its window, for as long as its program lives (rule 6).
    var outlivesWindow = false
    /// Whether it holds what a document did, which was made anew or linked, and is not what a program wrote (rules 5, 9
    /// and 16).
    var isRemainder = false
  }

  /// What becomes of a file whose window has passed.
  enum Aging {
    case established
    /// Its writers have yet to close it.
    case young
    /// Its maker, which lives, is remembered.
    case makerRemembered
  }

  private struct Name: Hashable {
    let parent: Int64
    let name: [UInt8]
  }

  private var young = AgingTable<Int64, YoungFile>()
  private var remembered = AgingTable<Name, Remembered>()
  /// The names in `remembered` of each document.
  private var namesByItem = SegmentedDictionary<Int64, Set<Name>>()

  // MARK: - Files

  /// Notes that `process` made the file.
  mutating func noteCreated(_ ino: Int64, process: Int32, isRemainder: Bool = false, at time: Timestamp) {
    young.append(ino, YoungFile(process: process, time: time, isRemainder: isRemainder))
    if young.count > Self.limit, let oldest = young.oldestKey { young.remove(oldest) }
  }

  /// Notes that a writer closed the file: it stays young from now on, if it is.
  mutating func closed(_ ino: Int64, at time: Timestamp) {
    if young[ino]?.outlivesWindow == false { renew(ino, at: time) }
  }

  private mutating func renew(_ ino: Int64, at time: Timestamp) {
    young[ino]?.time = time
    young.renew(ino)
  }

  /// Notes that contents of the file were closed or synced (rules 2 and 6).
  ///
  /// - Parameters:
  ///   - process: The program that closed them; nil where nobody can tell, as for fsync(2).
  ///   - name: The name that the file has.
  mutating func saved(_ ino: Int64, by process: Int32?, under name: [UInt8]) {
    guard let file = young[ino] else { return }
    if file.hadLastingName || !FileRole.looksPassing(name) { young[ino]?.wasProved = true }
    if case .backup = FileRole(name) { young[ino]?.wasBackup = true }
    if let process, process != file.process { holdsOthers(ino) }
  }

  /// Notes that the file is not its maker's alone (rule 2).
  mutating func holdsOthers(_ ino: Int64) { young[ino]?.holdsOthersWork = true }

  /// Notes that `process` gave the file another name (rules 1 and 2).
  ///
  /// - Parameters:
  ///   - isProved: whether it was proved under the name that it has had.
  ///   - isLasting: whether one of the two names looks like no temporary file's.
  mutating func named(_ ino: Int64, by process: Int32, isProved: Bool = false, isLasting: Bool = false) {
    guard let file = young[ino] else { return }
    if file.process != process { young[ino]?.process = 0 }
    if isProved { young[ino]?.wasProved = true }
    if isLasting { young[ino]?.hadLastingName = true }
  }

  /// Whether the young file holds what a document did that was made anew or linked.
  func isRemainder(_ ino: Int64) -> Bool { young[ino]?.isRemainder ?? false }

  func wasProved(_ ino: Int64) -> Bool { young[ino]?.wasProved ?? false }

  /// Whether the young file was closed with contents under the name of a backup (rule 3).
  func wasBackup(_ ino: Int64) -> Bool { young[ino]?.wasBackup ?? false }

  /// Whether another program than its maker saved contents in the young file.
  func holdsOthersWork(_ ino: Int64) -> Bool { young[ino]?.holdsOthersWork ?? false }

  /// Notes that someone saw the file's identity (rule 1).
  mutating func becomesKnown(_ ino: Int64) { young[ino] = nil }

  mutating func choseMode(_ ino: Int64) { young[ino]?.isModeChosen = true }

  func isModeChosen(_ ino: Int64) -> Bool { young[ino]?.isModeChosen ?? false }

  /// Whether the file is young, whatever program made it.
  func isYoung(_ ino: Int64, at time: Timestamp) -> Bool {
    young[ino].map { time.nanoseconds - $0.time.nanoseconds < Self.window } ?? false
  }

  /// Whether the file is young and `process` made it.
  func isOwn(_ ino: Int64, of process: Int32, at time: Timestamp) -> Bool {
    guard process != 0, let file = young[ino], isYoung(ino, at: time) else { return false }
    return file.process == process
  }

  /// Whether `process` made the file, as far as that is remembered, and nobody got to know it since.
  func isMaker(_ process: Int32, of ino: Int64) -> Bool { process != 0 && young[ino]?.process == process }

  /// When the file was made or closed last, if it is young.
  func time(of ino: Int64) -> Timestamp? { young[ino]?.time }

  /// Exchanges the ages of two files whose contents changed places.
  mutating func swap(_ left: Int64, _ right: Int64) { (young[left], young[right]) = (young[right], young[left]) }

  mutating func forget(_ ino: Int64) { young[ino] = nil }

  // MARK: - Names

  mutating func remember(
    _ item: Int64, ino: Int64, from parent: Int64, _ name: [UInt8], process: Int32, mode: UInt32, event: Int64?,
    since: Timestamp, at time: Timestamp
  ) {
    guard process != 0 else { return }
    let key = Name(parent: parent, name: name)
    forget(key)
    remembered.append(
      key, Remembered(item: item, ino: ino, process: process, time: time, mode: mode, event: event, since: since))
    namesByItem.update(item, default: []) { _ = $0.insert(key) }
    if remembered.count > Self.limit, let oldest = remembered.oldestKey { forget(oldest) }
  }

  private mutating func forget(_ name: Name) {
    guard let item = remembered[name]?.item else { return }
    remembered.remove(name)
    namesByItem[item]?.remove(name)
    if namesByItem[item]?.isEmpty ?? false { namesByItem[item] = nil }
  }

  /// The document that had the name, if `process` took it away within the window.
  func former(_ parent: Int64, _ name: [UInt8], process: Int32, at time: Timestamp) -> Remembered? {
    guard process != 0, let memory = remembered[Name(parent: parent, name: name)],
      time.nanoseconds - memory.time.nanoseconds < Self.window, memory.process == process
    else { return nil }
    return memory
  }

  /// Forgets the name: it was made again, or its document is gone.
  mutating func settle(_ parent: Int64, _ name: [UInt8]) { forget(Name(parent: parent, name: name)) }

  /// Forgets all names of a document.
  mutating func settle(item: Int64) { for name in namesByItem[item] ?? [] { forget(name) } }

  // MARK: - Time

  /// Whether nothing is young and no name remembered.
  var isEmpty: Bool { young.isEmpty && remembered.isEmpty }

  /// Whether something in it changes with time alone.
  var expires: Bool { !remembered.isEmpty || young.values.contains { !$0.outlivesWindow } }

  /// Files and names in memory.
  var counts: (young: Int, remembered: Int) { (young.count, remembered.count) }

  /// Forgets a file if it is older than the window.
  mutating func expire(_ ino: Int64, at time: Timestamp, aging: (_ ino: Int64, _ process: Int32) -> Aging) {
    guard let file = young[ino] else { return }
    // Where the clock was put back, it ages from now on.
    if file.time > time { return renew(ino, at: time) }
    guard Self.hasPassed(since: file.time, at: time) else { return }
    switch aging(ino, file.process) {
    case .established: young[ino] = nil
    case .young:
      young[ino]?.outlivesWindow = false
      renew(ino, at: time)
    case .makerRemembered:
      young[ino]?.outlivesWindow = true
      // It is looked at again after those that are younger now.
      young.renew(ino)
    }
  }

  /// Whether the window has passed; nobody knows that of a time that is yet to come.
  private static func hasPassed(since start: Timestamp, at time: Timestamp) -> Bool {
    time.nanoseconds - start.nanoseconds >= window
  }

  /// The oldest files that are older than the window, or from a time that is yet to come, `limit` at most.
  func oldestFiles(_ limit: Int, expiredAt time: Timestamp) -> [Int64] {
    young.oldestKeys(limit) { Self.hasPassed(since: $0.time, at: time) || $0.time > time }
  }

  /// Forgets names that are older than the window, `limit` at most; returns whether there may be more.
  mutating func expireNames(at time: Timestamp, limit: Int) -> Bool {
    let names = remembered.oldestKeys(limit) { Self.hasPassed(since: $0.time, at: time) }
    for name in names { forget(name) }
    return names.count == limit
  }
}
