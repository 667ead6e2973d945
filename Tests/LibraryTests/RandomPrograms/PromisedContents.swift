import SheafModel

@testable import SheafLibrary

/// What close(2) and fsync(2) promised: contents that some version must hold from then on.
///
/// One editing session is one version, which later saves of the session renew (docs/ARCHITECTURE.md, "Versions"): so a
/// promise is kept by its contents and by all that the same session wrote later, and one that emptied the file promises
/// nothing any more. What the last to write closed, no other program renews, and nothing that is opened later. A promise can be broken by
/// - a purge of what held it;
/// - the removal of a file that nobody could mean (rule 6 of ``Identity``): its own program takes its last name away
///   before it was ever closed with contents and had a name that is no temporary file's, or within two seconds after
///   that if its name only looks like one;
/// - a file that dissolves in the document whose name it takes (rule 3 of ``Identity``): its last contents are that
///   document's, and what was closed in it before under a temporary file's name, and never under that of a backup,
///   goes.
struct PromisedContents {
  struct Promise {
    var kept: Set<String>
    /// What was only appended, and may end whatever others saved meanwhile; empty where something else was done, too.
    var appended: String
    let action: String
  }

  private struct Session {
    /// The handles that wrote, and whether each was flushed since.
    var writers: [UInt64: Bool]
    /// What the account has in the file since its last write.
    var text = ""
    /// What was written last; empty where the file was emptied.
    var last = ""
    /// All that was written, if it was only appended.
    var appended: String? = ""
    /// What the account had in the file since then, before others saved.
    var former: Set<String> = []
    /// The promise that its later saves renew.
    var promise: Int?
    /// The handle that wrote last, and its program, unless it only emptied the file.
    var lastWriter: (handle: UInt64, process: Int32)?
    /// That program, if the close of the handle made the promise.
    var closedBy: Int32?
  }

  private struct Key: Hashable {
    let ino: Int64
    let account: Int64
  }

  /// How a file came to be what it is.
  private struct Life {
    /// The program that made it; 0 once another one gave it a name.
    var maker: Int32
    var time: Timestamp
    /// When it was closed with contents first.
    var savedSince: Timestamp?
    /// Whether that was under a name that looks like no temporary file's, or it got one since.
    var isProved = false
    /// Whether it was closed with contents under the name of a backup.
    var wasBackup = false
  }

  private struct Name: Hashable {
    let parent: Int64
    let name: [UInt8]
  }

  private var promises: [Int: Promise] = [:]
  private var byInode: [Int64: [Int]] = [:]
  private var count = 0
  private var sessions: [Key: Session] = [:]
  private var lives: [Int64: Life] = [:]
  /// Names that a program took away, which it may make again.
  private var lost: [Name: (process: Int32, time: Timestamp, ino: Int64)] = [:]
  private var purged: Set<String> = []
  /// The programs that gave a document's name to another file, by the inode which lost it and its row.
  private var replacers: [Int64: Int32] = [:]
  /// What accounts have in such inodes once another program than that one wrote to them.
  private var replacedWork: [Key: String] = [:]

  // MARK: - Writing

  /// Notes that a handle changed a file, whose account has `text` in it now.
  ///
  /// - Parameters:
  ///   - written: What it wrote; empty where it emptied the file.
  ///   - appends: Whether it appended that.
  mutating func wrote(
    _ slot: ProgramWorld.OpenSlot, _ account: Int64, _ text: String, written: String, appends: Bool,
    by process: Int32
  ) {
    let key = Key(ino: slot.ino, account: account)
    if let replacer = replacers[slot.ino], replacedWork[key] != nil || replacer != process && !text.isEmpty {
      replacedWork[key] = text
    }
    if let session = sessions[key], session.writers[slot.handle] == nil, session.writers.values.allSatisfy({ $0 }) {
      sessions[key] = nil
    }
    if let session = sessions[key], let closed = session.closedBy,
      closed != process || session.writers[slot.handle] == nil
    {
      sessions[key]?.promise = nil
    }
    sessions[key, default: Session(writers: [:])].writers[slot.handle] = false
    sessions[key]?.closedBy = nil
    sessions[key]?.lastWriter = written.isEmpty ? nil : (slot.handle, process)
    sessions[key]?.last = written
    let appended = sessions[key]?.appended
    sessions[key]?.appended = appends ? appended.map { $0 + written } : nil
    sessions[key]?.former = []
    sessions[key]?.text = text
    if let promise = sessions[key]?.promise {
      promises[promise]?.kept.insert(text)
      promises[promise]?.appended = sessions[key]?.appended ?? ""
    }
  }

  /// Notes what an account has in a file now. Where it only appended, that was appended again to what another account
  /// saved since.
  mutating func holds(_ ino: Int64, _ account: Int64, _ text: String) {
    let key = Key(ino: ino, account: account)
    guard let session = sessions[key], text.contains(session.last) else { return }
    sessions[key]?.former.insert(session.text)
    sessions[key]?.text = text
    if let promise = sessions[key]?.promise { promises[promise]?.kept.insert(text) }
  }

  /// Notes that a close or fsync returned, and promised what the account had written.
  ///
  /// - Parameter handle: The one that was flushed; nil for fsync(2), which goes for all.
  mutating func saved(
    _ ino: Int64, _ account: Int64, _ handle: UInt64?, _ name: [UInt8], _ action: String, at time: Timestamp
  ) {
    let key = Key(ino: ino, account: account)
    // What all who wrote have closed is promised already, or was given up since.
    guard let session = sessions[key], session.writers.values.contains(false) else { return }
    let text = session.text
    if let handle, sessions[key]?.writers[handle] != nil { sessions[key]?.writers[handle] = true }
    if let handle, let writer = session.lastWriter, handle == writer.handle { sessions[key]?.closedBy = writer.process }
    if let former = sessions[key]?.promise { promises[former] = nil }
    sessions[key]?.promise = nil
    guard !text.isEmpty else { return }
    count += 1
    promises[count] = Promise(
      kept: session.former.union([text]), appended: session.appended ?? "", action: action)
    byInode[ino, default: []].append(count)
    sessions[key]?.promise = count
    if handle != nil, lives[ino]?.savedSince == nil { lives[ino]?.savedSince = time }
    if handle != nil, !FileRole.looksPassing(name) { lives[ino]?.isProved = true }
    if handle != nil, case .backup = FileRole(name) { lives[ino]?.wasBackup = true }
  }

  /// Notes that the last handle that could write was closed.
  mutating func lastWriterClosed(_ ino: Int64, _ account: Int64, _ action: String) {
    let key = Key(ino: ino, account: account)
    sessions[key] = nil
    // It is kept in the account's `Documents`, as `NAME (not saved)`.
    guard let text = replacedWork.removeValue(forKey: key), !text.isEmpty else { return }
    count += 1
    promises[count] = Promise(kept: [text], appended: "", action: action)
  }

  /// Notes that a program gave a document's name to another file, and what had it lives on for those who have it open.
  mutating func replaced(_ ino: Int64, by process: Int32) { replacers[ino] = process }

  mutating func endAllSessions() {
    sessions = [:]
    // Another process knows of no young files, and gives their numbers again.
    lives = [:]
    lost = [:]
    byInode = [:]
    (replacers, replacedWork) = ([:], [:])
  }

  /// Notes that a file got earlier contents, whoever has it open.
  mutating func restored(_ ino: Int64) {
    for key in sessions.keys where key.ino == ino { sessions[key] = nil }
  }

  // MARK: - Files

  mutating func made(_ ino: Int64, by process: Int32, at time: Timestamp) {
    lives[ino] = Life(maker: process, time: time)
  }

  mutating func closed(_ ino: Int64, at time: Timestamp) { lives[ino]?.time = time }

  /// Notes that files which programs have yet to close stay young.
  mutating func staysYoung(_ inodes: Set<Int64>, at time: Timestamp) {
    for ino in inodes where isYoung(ino, at: time) { lives[ino]?.time = time }
  }

  /// - Parameter name: The one that it got; nil where it gave its own away.
  mutating func named(_ ino: Int64, by process: Int32, _ name: [UInt8]? = nil) {
    guard let life = lives[ino] else { return }
    if life.maker != process { lives[ino]?.maker = 0 }
    if let name, !FileRole.looksPassing(name), life.savedSince != nil { lives[ino]?.isProved = true }
  }

  /// Notes that two files changed places and left their items, with their histories and ages, on their names
  /// (rule 10 of ``Identity``).
  mutating func leftItems(_ left: Int64, _ right: Int64) {
    (lives[left], lives[right]) = (lives[right], lives[left])
    (byInode[left], byInode[right]) = (byInode[right], byInode[left])
  }

  private func isYoung(_ ino: Int64, at time: Timestamp) -> Bool {
    lives[ino].map { time.nanoseconds - $0.time.nanoseconds < Identity.window } ?? false
  }

  func isOwn(_ ino: Int64, of process: Int32, at time: Timestamp) -> Bool {
    process != 0 && isYoung(ino, at: time) && lives[ino]?.maker == process
  }

  func isProved(_ ino: Int64) -> Bool { lives[ino]?.isProved ?? true }

  /// Whether a file that loses its last name by `process` leaves no trace.
  func leavesNoTrace(_ ino: Int64, _ name: [UInt8], _ process: Int32, at time: Timestamp) -> Bool {
    guard !isProved(ino), !hasStood(ino, name, at: time) else { return false }
    // What has a scratch name is its maker's for as long as that lives.
    return isOwn(ino, of: process, at: time) || FileRole(name) == .scratch && lives[ino]?.maker == process
  }

  /// Whether contents have stood for two seconds under a name that only looks like a temporary file's.
  private func hasStood(_ ino: Int64, _ name: [UInt8], at time: Timestamp) -> Bool {
    guard FileRole(name) == .document, let since = lives[ino]?.savedSince else { return false }
    return time.nanoseconds - since.nanoseconds >= Identity.standing
  }

  /// Notes that a file had a name until now, or gets another one.
  mutating func leaves(_ ino: Int64, _ name: [UInt8], at time: Timestamp) {
    if hasStood(ino, name, at: time) { lives[ino]?.isProved = true }
  }

  /// Notes that a program took a name away.
  mutating func tookName(
    _ parent: Int64, _ name: [UInt8], of ino: Int64, isLast: Bool, _ process: Int32, at time: Timestamp
  ) {
    if isLast, leavesNoTrace(ino, name, process, at: time) { release(ino, but: nil) }
    lost[Name(parent: parent, name: name)] = (process, time, ino)
  }

  /// The file that had a name which a program took away and may yet make again.
  func remembered(_ parent: Int64, _ name: [UInt8], _ process: Int32, at time: Timestamp) -> Int64? {
    guard let memory = lost[Name(parent: parent, name: name)], memory.process == process,
      time.nanoseconds - memory.time.nanoseconds < Identity.window
    else { return nil }
    return memory.ino
  }

  /// Notes that a file became a document of its own by what a program did to one of its names.
  mutating func parted(_ ino: Int64, _ name: [UInt8]?, by process: Int32, holding text: String?, at time: Timestamp) {
    let isLasting = name.map { !FileRole.looksPassing($0) } ?? false
    lives[ino] = Life(maker: process, time: time, isProved: isLasting && !(text ?? "").isEmpty)
  }

  /// Notes that a file, which holds `text`, became a document that was there before: it is not young any more.
  mutating func dissolved(_ ino: Int64, _ name: [UInt8], _ process: Int32, holding text: String?, at time: Timestamp) {
    defer { lives[ino] = nil }
    let wasBackup = lives[ino]?.wasBackup ?? false
    let isPassing = isYoung(ino, at: time) && FileRole.looksPassing(name) && !wasBackup
    guard !isProved(ino), isPassing || isOwn(ino, of: process, at: time) else { return }
    release(ino, but: text)
  }

  private mutating func release(_ ino: Int64, but text: String?) {
    for number in byInode[ino] ?? [] {
      guard let promise = promises[number] else { continue }
      if let text, promise.kept.contains(text) { continue }
      promises[number] = nil
    }
  }

  // MARK: - Looking

  mutating func purged(_ texts: Set<String>) { purged.formUnion(texts) }

  /// - Throws: ``Violation`` where promised contents are nowhere.
  func check(_ contents: Set<String>) throws {
    for (_, promise) in promises.sorted(by: { $0.key < $1.key })
    where !promise.kept.contains("") && promise.kept.isDisjoint(with: contents)
      && promise.kept.isDisjoint(with: purged)
      && (promise.appended.isEmpty || !contents.union(purged).contains { $0.hasSuffix(promise.appended) })
    {
      throw Violation(
        rule: "closed contents are in some version",
        what: "\(promise.kept.sorted().joined(separator: " or ")) of '\(promise.action)' is nowhere in "
          + contents.sorted().joined(separator: " "))
    }
  }
}
