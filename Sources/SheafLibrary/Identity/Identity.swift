import Foundation
import SheafModel

/// Decides which entry is which document, whichever sequence of temporary files a program uses to save it.
///
/// Identity belongs to the entry that people mean, not to the inode that an editor wrote (rule 4 of
/// docs/ARCHITECTURE.md). A program is a process (thread group); its name is no criterion. Names of files decide
/// doubtful cases only (``FileRole``).
///
/// Kinds of files:
/// 1. A file is *young* until 15 s after it was made or closed last, unless it got *known* before: someone read its id,
///    or a command named it. An older one is not young again by being written. It is *own* to the program that made it,
///    until another one gives it a name. Every file that is not young is *established*, and so is a young one for every
///    program but its own.
/// 2. An own file is *proved* when it was closed or synced with contents in it, and had a name by then that does not
///    look like a temporary file's, or got one after that. It stays proved under other names, while it is open again,
///    while it is being written, and when it is emptied. What only looks like a temporary file's name, as that of
///    `template.docx` or `.bashrc`, proves less: for rules 3 and 6, a file of such a name is proved two seconds after its
///    contents were closed or synced first. An own file is its maker's *alone* until another program saves contents in it
///    or opens it to write, or another account has changes in it or a second one saves some.
///
/// Documents:
/// 3. `rename(new → doc)` over a document that is established, proved or not its maker's alone, and does not have the
///    name of a lock, probe or autosave file: `doc` keeps id, history, labels and user xattrs (those that `new` set
///    win), and takes the contents as its next version. A young or quiet `new` becomes part of it. The history of any
///    other `new` goes to the trash, and the event says where the contents came from (an event reports the deletion of
///    `new` only if `new` was in another share: the people who saw it there get no other event). The history of a `new`
///    that saved other contents than these before goes to the trash, too, with two exceptions: `new` is own and not
///    proved; or it is young with a passing name, and neither this nor any name under which it was closed is that of a
///    backup. If several accounts wrote to it, its history goes there in any case.
/// 4. `doc` keeps its mode, too, if `new` is young and nobody called chmod on it; but not if `doc` is own itself and
///    nobody called chmod on that either: a program that makes two files and renames one over the other gets the result
///    of rename(2), since no person can have meant the first file's mode. What the owner of `new` may read and write,
///    they may in `doc`: a program can open again what it made. If open(2) makes `doc` again with 0666 or 0777, its
///    execute bits follow that (a version control tool makes scripts so); any narrower mode counts as chosen.
/// 5. `rename(doc → X)` and `unlink(doc)` of an established document are *remembered* for 15 s, in memory. If the same
///    program makes `doc` again in that time, by open(2), by linking an own file there, or by renaming a young file
///    there, it makes the same document: `X` becomes a document of its own with the old contents, or the deletion is
///    undone; but not if `doc` was given to another account meanwhile, nor where people who see the folder would see
///    what is not for them: `X` lies outside of the share that `doc` was in and has changed since, or `doc` was deleted
///    before the folder was shared and is made by open(2). A rename from a temporary, lock or probe name is not
///    remembered (`doc.tmp` renamed to `doc`, then `doc.tmp` made again, are two saves), unless `X` is named after that
///    (`doc.tmp~`). A document whose contents another one took by rule 3 is remembered in the same way: it is a second
///    backup of any name.
/// 6. An own file is remembered only if it is proved: after a rename if `X` is named after it or like a temporary file,
///    and after every unlink. An own file that is not proved, and its maker's alone, leaves no trace when its maker
///    unlinks it. For this, a file with the name of a lock, probe or autosave file counts as own as long as its maker
///    lives, if nobody knows it; but not if it holds contents that a document left (rules 5, 9 and 16) and was written
///    since. All other files go to the trash, with every version: people find what a close or an fsync saved by its
///    name.
/// 7. If another program makes a remembered name, it makes a new document, as `rm a; echo > a` and `mv a b; cp c a` in
///    a script do. Moving an established document to the name (`rename(b → a)` in a swap through a third name, even in
///    one program) is a move: ids go with the entries; but not if `X` is named as the backup of `doc` (`mv -b b doc`).
/// 8. `rename(doc → X)` onto a file that is quiet, or that is named as the backup of `doc`, moves `doc` over it, so
///    that a second save with a backup is the same as the first. (`X` goes to the trash if it was established and one
///    of its versions is none of the latest of `doc`.)
/// 9. All names of an inode are one item, its place the oldest name. A rename over the oldest name keeps the identity
///    there, and the other names become a document of their own; over a younger name it makes only that name new.
/// 10. RENAME_EXCHANGE of two regular files with one name each swaps contents and leaves ids on their names if one of
///    them is a document and the other young. To find the young file, Sheaf compares age and whether they are known,
///    then their makers, then the names: that of a temporary file, or one made from the other's (`doc.x` from `doc`).
///    Otherwise ids go with the entries.
/// 11. `rename(new → doc)` while one account is still writing `new`: the version that this makes ends when the writer
///    closes, and there is none before the first byte. If several accounts wrote to `new`, their contents are versions
///    before that.
///
/// Events:
/// 12. A new file is `created` under the name that it has when the event is settled. It is part of making the file if a
///    program renames a young file that is not proved or that is named after its new name, or gives an own file the
///    name of a backup of a file beside it; events of its saves have that name, too. Any other rename is an event.
/// 13. A file is *quiet* if it then has a temporary, lock or probe name, or the name of a backup of a file beside it,
///    or if the old contents were left in it under such a name, or under one made from the other's in a folder for
///    backups (`bak/doc`). A quiet file is a document without events, until it is renamed to any other name.
/// 14. Events of actions that may be undone wait for the end of the program (and one more second, for the next program
///     of a script), or for 15 s, or, if the file was made, until it is known, or for room: at most ``EventLog/limit``
///     wait. If a program deletes a thousand things without a second's pause, they wait until it pauses: its last
///     deletion may be that of the folder. A restart settles all, in favour of keeping history.
/// 15. Rules 5 to 7 also apply to a build tool that removes and makes hundreds of files: a single process makes
///    versions; `rm` and `cc` make new documents, with the old ones in the trash.
/// 16. If `doc` is shared by itself, and `X`, beside it, is named after it, `link(doc → X)` makes `X` a document with
///    the same contents, as rule 9 would once `doc` is replaced: programs link the backup first, and hard links never
///    cross the border of a share.
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
  /// Nanoseconds after which a file that only seems to have a temporary file's name is missed.
  static let standing: Int64 = 2_000_000_000
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
    /// The account that saved contents in it first.
    var savedBy: Int64?
    /// When it was closed or synced with contents in it for the first time.
    var savedSince: Timestamp?
    /// Whether that was under such a name, or it had one before or got one after that.
    var wasProved = false
    /// Whether it was closed or synced with contents in it, under the name of a backup.
    var wasBackup = false
    /// Whether another program than its maker, or a second account, saved contents in it.
    var holdsOthersWork = false
    /// Whether it is remembered past its window, for as long as its program lives (rule 6).
    var outlivesWindow = false
    /// Whether it holds what a document did, which was made anew or linked, and is not what a program wrote (rules 5, 9
    /// and 16).
    var isRemainder = false
  }

  /// The state of a file whose window has passed.
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
  ///   - saver: The program that closed them, and its account; nil where nobody can tell, as for fsync(2).
  ///   - name: The name that the file has.
  mutating func saved(
    _ ino: Int64, by saver: (process: Int32, account: Int64)?, under name: [UInt8], at time: Timestamp
  ) {
    guard let file = young[ino] else { return }
    if file.savedSince == nil { young[ino]?.savedSince = time }
    if file.hadLastingName || !FileRole.looksPassing(name) { young[ino]?.wasProved = true }
    if case .backup = FileRole(name) { young[ino]?.wasBackup = true }
    guard let saver else { return }
    if file.savedBy == nil { young[ino]?.savedBy = saver.account }
    if saver.process != file.process || saver.account != file.savedBy ?? saver.account { holdsOthers(ino) }
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
    if isProved || isLasting && file.savedSince != nil { young[ino]?.wasProved = true }
    if isLasting { young[ino]?.hadLastingName = true }
  }

  /// Whether the young file holds what a document did that was made anew or linked.
  func isRemainder(_ ino: Int64) -> Bool { young[ino]?.isRemainder ?? false }

  func wasProved(_ ino: Int64) -> Bool { young[ino]?.wasProved ?? false }

  /// Notes that people would miss the file by now.
  mutating func prove(_ ino: Int64) { young[ino]?.wasProved = true }

  /// Whether contents of the young file have stood for as long as no temporary file's do (rule 2).
  func hasStood(_ ino: Int64, at time: Timestamp) -> Bool {
    young[ino]?.savedSince.map { time.nanoseconds &- $0.nanoseconds >= Self.standing } ?? false
  }

  /// Whether the young file was closed with contents under the name of a backup (rule 3).
  func wasBackup(_ ino: Int64) -> Bool { young[ino]?.wasBackup ?? false }

  /// Whether another program than its maker, or a second account, saved contents in the young file.
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
  ///
  /// - Parameter aging: The state of the file, where `hasAged` says whether its window has passed before: it is not
  ///   young again, whatever is written to it since.
  mutating func expire(
    _ ino: Int64, at time: Timestamp, aging: (_ ino: Int64, _ process: Int32, _ hasAged: Bool) -> Aging
  ) {
    guard let file = young[ino] else { return }
    // Where the clock was put back, it ages from now on.
    if file.time > time { return renew(ino, at: time) }
    guard Self.hasPassed(since: file.time, at: time) else { return }
    switch aging(ino, file.process, file.outlivesWindow) {
    case .established: young[ino] = nil
    case .young: renew(ino, at: time)
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
