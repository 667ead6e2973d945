import ConformanceKit
import Foundation
import SheafModel
import SheafReplica
import SheafStore
import SheafWire

@testable import SheafLibrary
@testable import SheafReplication

/// A machine with a library that is a replica, and a hub in memory.
final class LibraryMachine {
  struct Broken: Error, CustomStringConvertible { let description: String }

  let name: String
  /// By which the hub knows it.
  private lazy var device = name
  let folder: String
  private(set) var library: Library
  private let clock: MachineClock
  let account: Int64
  /// The highest serial, which lies beside the machine's key.
  private var serials: SerialFile
  private(set) var outcomes: [Verdict] = []
  /// What was done last.
  private(set) var stages: [String] = []
  private(set) var notices: [ReplicaNotice] = []
  /// Where contents come from that are not here, by version.
  var source: (WireID) -> String? = { _ in nil }
  /// What a reader of the library's log was told as news, and how far it is.
  private(set) var told: [Event] = []
  private var reading: Int64 = 0
  /// What was saved since a copy was made; nil where there is no copy.
  private var since: [Copy: Set<String>] = [:]

  /// A clock that goes on when it is told to.
  final class MachineClock: @unchecked Sendable {
    // The tests of a machine run one after the other, on one thread.
    private var time = Timestamp(seconds: 1_800_000_000)

    var now: Timestamp {
      time.nanoseconds += 1_000
      return time
    }

    func advance(seconds: Int64) { time.nanoseconds += seconds * 1_000_000_000 }
  }

  init(_ name: String, clock: MachineClock = MachineClock()) throws {
    self.name = name
    var template = Array("/var/tmp/sheaf-replica-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Broken(description: "no folder") }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.clock = clock
    library = try Self.open(folder, clock)
    let handle = try AccountHandle("alice@hub.example")
    _ = try library.addAccount(handle, name: "Alice")
    account = try library.number(of: handle)
    serials = SerialFile(folder + "/serial")
    try library.connect(account, zone: WireID(), hub: "hub.example")
    // The hub has nothing yet.
    try library.noteLogs([HubLogHead(share: nil, last: 0, read: 0)], of: account)
  }

  private static func open(_ folder: String, _ clock: MachineClock) throws -> Library {
    let library = try Library.open(LibraryLocation(path: folder + "/library.sqlite"), keepsItselfUp: false) {
      clock.now
    }
    _ = try library.change(.init(rapidSaves: .keep))
    return library
  }

  /// Ends the process, and begins another.
  func restart() throws {
    try library.close()
    try begin()
  }

  private func begin() throws {
    library = try Self.open(folder, clock)
    serials = SerialFile(folder + "/serial")
    try serials.raise(library, account)
  }

  func finish() throws {
    let problems = try library.check { _ in }.problems
    try library.close()
    try? FileManager.default.removeItem(atPath: folder)
    guard problems.isEmpty else { throw Broken(description: "\(name) is not sound: \(problems)") }
  }

  /// Whatever programs were about to do is done.
  func rest() { clock.advance(seconds: 20) }

  // MARK: - Copies

  /// A copy of the library's files.
  enum Copy: String {
    /// What the disk has, if the power fails now.
    case disk
    case backup
  }

  private static let suffixes = ["-changes", "-wal", "", "-working"]

  /// Makes a copy of the library, which is synced for it.
  func copy(_ copy: Copy) throws {
    try library.sync()
    try takeCopy(copy)
  }

  private func takeCopy(_ copy: Copy) throws {
    let target = "\(folder)/\(copy)"
    try? FileManager.default.removeItem(atPath: target)
    try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
    for file in Self.suffixes.map({ "library.sqlite" + $0 }) where access("\(folder)/\(file)", F_OK) == 0 {
      try FileManager.default.copyItem(atPath: "\(folder)/\(file)", toPath: "\(target)/\(file)")
    }
    if access("\(folder)/serial", F_OK) == 0 {
      try FileManager.default.copyItem(atPath: "\(folder)/serial", toPath: "\(target)/serial")
    }
    since[copy] = []
  }

  /// The process ends, and the next one finds the library as a copy has it.
  ///
  /// - Parameter withSerials: Whether all of the disk is put back, with what lies beside the key.
  /// - Returns: what was saved since; nil where there is no such copy.
  func putBack(_ copy: Copy, withSerials: Bool = false) throws -> Set<String>? {
    guard let lost = since[copy] else { return nil }
    try library.close()
    if withSerials {
      try? FileManager.default.removeItem(atPath: folder + "/serial")
      if access("\(folder)/\(copy)/serial", F_OK) == 0 {
        try FileManager.default.copyItem(atPath: "\(folder)/\(copy)/serial", toPath: folder + "/serial")
      }
    }
    for file in (Self.suffixes + ["-shm"]).map({ "library.sqlite" + $0 }) {
      try? FileManager.default.removeItem(atPath: "\(folder)/\(file)")
      guard access("\(folder)/\(copy)/\(file)", F_OK) == 0 else { continue }
      try FileManager.default.copyItem(atPath: "\(folder)/\(copy)/\(file)", toPath: "\(folder)/\(file)")
    }
    try begin()
    if since[.disk] != nil { try self.copy(.disk) }
    return lost
  }

  /// Another machine's library becomes a copy of this one's, with the same key.
  func copied(as name: String) throws -> LibraryMachine {
    try library.sync()
    return try LibraryMachine(name, copyOf: self)
  }

  private init(_ name: String, copyOf other: LibraryMachine) throws {
    self.name = name
    folder = "\(other.folder)/\(name)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    for file in Self.suffixes.map({ "library.sqlite" + $0 }) where access("\(other.folder)/\(file)", F_OK) == 0 {
      try FileManager.default.copyItem(atPath: "\(other.folder)/\(file)", toPath: "\(folder)/\(file)")
    }
    clock = other.clock
    account = other.account
    library = try Self.open(folder, clock)
    serials = SerialFile(other.folder + "/serial")
    try serials.raise(library, account)
    device = other.device
  }

  /// Ends the connection, and begins another one with a key of its own, to a zone whose id is higher or lower than the
  /// one before.
  func connectAnew(toHigherZone isHigher: Bool) throws {
    try library.disconnect(account)
    serials = SerialFile(folder + "/new-serial")
    let zone = WireID(bytes: Array(repeating: isHigher ? 0xff : 0x01, count: 16))!
    try library.connect(account, zone: zone, hub: "hub.example")
    device = "\(name), connected anew"
  }

  // MARK: - Contents on demand

  /// Lets contents come only when they are read.
  func limit() throws { _ = try library.change(.init(cache: 0)) }

  /// Gives back what the hub has had for a day; a day passes before if `waits`.
  func free(waits: Bool) throws -> FreedContents {
    if waits { clock.advance(seconds: 90_000) }
    return try library.freeContents(ItemPath(account: AccountHandle("alice@hub.example"), "Documents")) { _ in }
  }

  /// Does something, and fetches what it needs.
  func whenHere<Value>(_ body: () throws -> Value) throws -> Value {
    var fetches = 0
    while true {
      do {
        return try body()
      } catch let absent as AbsentContents {
        fetches += 1
        guard fetches < 10, let text = source(absent.version) else {
          throw Broken(description: "\(name): contents of \(absent.version) do not come")
        }
        let handle = try library.beginContents(of: account)
        defer { try? library.release(handle) }
        try write(Array(Array(text.utf8)[Int(absent.range.lowerBound)..<Int(absent.range.upperBound)]), to: handle)
        try library.take(absent, contents: handle, of: account)
      }
    }
  }

  // MARK: - With the hub

  /// Does one step with the hub; returns whether there was anything to do.
  func step(_ hub: inout SimulatedHub, losesAnswer: Bool, doubles: Bool = false, limit: Int = 1_000) throws -> Bool {
    var stage = "step"
    defer { stages.append(stage) }
    do {
      return try step(&hub, losesAnswer: losesAnswer, doubles: doubles, limit: limit, &stage)
    } catch let error as SheafError where error.kind != .busy {
      throw Broken(description: "\(name), \(stage): \(error)")
    }
  }

  private func step(
    _ hub: inout SimulatedHub, losesAnswer: Bool, doubles: Bool, limit: Int, _ stage: inout String
  ) throws -> Bool {
    if let (number, step) = try library.step(of: account) {
      // What is new comes alone, or together with what else is new.
      if !number.isMultiple(of: 3) {
        stage = "making together"
        let made = try library.makeTogether(of: account) { version in
          losesAnswer ? nil : hub.text(version.id).map { Array($0.utf8) }
        }
        if made > 0 {
          stage = "made together: \(made)"
          return true
        }
      }
      var contents: ReceivedContents?
      var handle: UInt64?
      if let needed = try library.needsContents(step, of: account) {
        if losesAnswer { return true }
        // A hub that went back may have them no more. What was deleted it does not give out.
        if let text = hub.text(needed.version.id), hub.gives(needed.item) {
          if number.isMultiple(of: 2) {
            contents = .bytes(Array(text.utf8))
          } else {
            let file = try library.beginContents(of: account)
            handle = file
            try write(Array(text.utf8), to: file)
            contents = .file(file)
          }
        }
      }
      defer { if let handle { try? library.release(handle) } }
      stage = "\(step)".replacing("SheafReplica.", with: "").replacing("SheafWire.", with: "")
      _ = try library.carryOut(number, step, of: account, contents: contents)
      return true
    }
    let waiting = try library.sends(of: account, limit: limit)
    if !waiting.isEmpty {
      stage = "sends"
      var groups: [[Send]] = []
      for each in waiting {
        if each.first == each.send.serial { groups.append([]) }
        guard let send = try filled(each.send) else {
          // What was to be sent is no more.
          if groups.count == 1 {
            try library.withdrawSends(from: each.first, of: account)
            return true
          }
          groups.removeLast()
          break
        }
        groups[groups.count - 1].append(send)
      }
      try serials.reserve(groups.last?.last?.serial ?? 0, for: library)
      if since[.disk] != nil, library.store.isDurable { try takeCopy(.disk) }
      if doubles { _ = try hub.send(groups, from: device) }
      let verdicts = try hub.send(groups, from: device)
      if losesAnswer { return true }
      stage = "settling"
      outcomes += verdicts
      stage = "settled \(zip(groups.joined(), verdicts).map { "\($0.0) → \($0.1)" })"
      notices += try library.settle(verdicts, of: account)
      return true
    }
    if try library.replica(account)?.token.map({ $0 != "\(hub.epoch)" }) ?? false {
      try library.reread(account, isGone: true)
    }
    guard let replica = try library.replica(account) else { throw Broken(description: "is no replica") }
    if replica.rereads, replica.token == nil {
      stage = "listing"
      let items = hub.page(after: 0, limit: .max).items
      // What was noted before an answer was lost is forgotten.
      try library.noteListed(losesAnswer ? items.dropLast(items.count / 2) : items, begins: true, of: account)
      if losesAnswer { return true }
      try library.endListing(token: "\(hub.epoch)", read: items.last?.number ?? 0, of: account)
      return true
    }
    if replica.rereads {
      if losesAnswer { return true }
      try library.noteAll(hub.page(after: 0, limit: .max).items, token: "\(hub.epoch)", of: account)
      return true
    }
    stage = "planning"
    let page = hub.page(after: replica.read, limit: limit)
    if !page.items.isEmpty {
      if losesAnswer { return true }
      try library.note(FeedPage(items: page.items, token: "\(hub.epoch)", hasMore: page.hasMore), of: account)
      if page.hasMore { return true }
    }
    switch try library.plan(account) {
    case .planned(let told):
      stage = "planned \(page.items)"
      notices += told
      return true
    case .settled:
      if losesAnswer { return false }
      stage = "history"
      if try compareHistories(hub) || !page.items.isEmpty { return true }
      stage = "log"
      return try readLog(hub, limit: limit)
    }
  }

  /// Reads a page of the hub's log; returns whether there was anything new. What a reader of the library's log hears then
  /// is in ``told``.
  private func readLog(_ hub: SimulatedHub, limit: Int) throws -> Bool {
    try library.noteLogs([HubLogHead(share: nil, last: Int64(hub.zone.events.count), read: 0)], of: account)
    guard let position = try library.logPositions(of: account).first(where: { $0.share == nil }) else {
      throw Broken(description: "has no log")
    }
    let (page, isAnew) = hub.log(after: position.number, of: position.token.flatMap { Int($0) }, limit: limit)
    let isNew = isAnew || !page.events.isEmpty
    if isNew {
      try library.note(page, ofShare: nil, of: account, device: device, isAnew: isAnew)
    }
    let last = library.lastEvent
    // A library that was put back has less than was read.
    reading = min(reading, last)
    while reading < last {
      let news = try library.events(after: reading, limit: 1_000, for: nil, in: .all, isNews: true)
      told += news.events.filter { $0.data.device != nil }
      reading = news.next
    }
    return isNew
  }

  /// The hub's log as this library shows it, and what it says that waits.
  func log() throws -> (told: [Event], waiting: [Event]) {
    let events = try library.latestEvents(limit: 1_000_000, for: AccountHandle("alice@hub.example"))
    return (
      events.filter { $0.data.device != nil }.sorted { $0.sequence < $1.sequence }, events.filter(\.isWaiting)
    )
  }

  /// Compares the history of one item; returns whether there was one.
  private func compareHistories(_ hub: SimulatedHub) throws -> Bool {
    var bound = Int64.max
    while let due = try library.nextHistory(of: account, toldBefore: bound) {
      let list = VersionList(versions: hub.versions(of: due.item, after: due.listedAfter))
      let missing: [ItemVersion]
      switch try library.compareHistory(due, with: list, of: account) {
      case .missing(let versions): missing = versions
      case .anew: return true
      case .later:
        bound = due.told
        continue
      }
      // Now and then it is cut short.
      let fetches = try library.fetchesHistory(due, of: account)
      for version in missing.prefix(missing.count > 2 ? 2 : missing.count) {
        let handle = version.size > 0 && fetches ? try library.beginContents(of: account) : nil
        defer { if let handle { try? library.release(handle) } }
        if let handle { try write(Array((hub.text(version.id) ?? "").utf8), to: handle) }
        try library.addVersion(version, to: due, of: account, contents: handle.map { .file($0) })
      }
      if missing.count <= 2 { try library.finishHistory(due, list, of: account) }
      return true
    }
    return false
  }

  /// The versions of an item by their ids, with what they hold; also of one that was deleted.
  func history(of id: WireID) throws -> [WireID: (number: Int64, text: String)] {
    let rows = try library.locked { () -> [(WireID, VersionRow)] in
      guard let replica = try library.read({ try $0.replica(account) }),
        let inode = try library.replicaInode(id, of: account), let item = try library.item(of: inode)
      else { return [] }
      let ids = try library.replicaVersions(of: item, replica).ids
      return try library.read { try $0.versions(item.id) }.compactMap { row in ids[row.number].map { ($0, row) } }
    }
    var history: [WireID: (number: Int64, text: String)] = [:]
    for (id, row) in rows {
      history[id] = (row.number, row.content.absentLength > 0 ? source(id) ?? "" : try text(of: row.content))
    }
    return history
  }

  private func text(of content: StoredContent) throws -> String {
    var working = WorkingCopy(content)
    let bytes = try read { offset, buffer in
      try library.locked { try working.read(at: offset, into: buffer, from: library) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A send with the contents of its version; nil if the version is no more.
  private func filled(_ send: Send) throws -> Send? {
    guard var version = send.version else { return send }
    guard let reader = try library.versionReader(version.id, ofItem: send.item, of: account) else { return nil }
    var send = send
    do {
      version.contents = Data(try read { try library.read(reader, at: $0, into: $1) })
    } catch is AbsentContents {
      return nil
    }
    send.version = version
    return send
  }

  // MARK: - What programs do

  /// A program with this process as its own: a caller whose files are young, and who saves as editors do.
  var program: Caller { caller(thread: getpid()) }
  /// A command, or a program that nobody remembers.
  var other: Caller { caller(thread: 0) }

  private func caller(thread: Int32) -> Caller {
    Caller(uid: 0, gid: 0, thread: thread, door: 0, account: account, groups: { [] })
  }

  var documents: Int64 { get throws { try library.documents(of: AccountHandle("alice@hub.example")) } }

  func inode(_ path: String) throws -> Int64? {
    var ino = try documents
    for name in path.split(separator: "/") {
      do { ino = try library.lookup(ino, Array(name.utf8), other).ino } catch is SheafError { return nil }
    }
    return ino
  }

  func write(_ bytes: [UInt8], to handle: UInt64, at offset: Int64 = 0) throws {
    try bytes.withUnsafeBytes {
      try library.write(
        handle, at: offset, $0, appends: false, isWriteBack: false, by: nil, clearsCapability: false)
    }
  }

  /// Saves a text under a name of a folder, in place.
  func save(_ text: String, _ parent: Int64, _ name: String, _ caller: Caller) throws {
    // What was moved to the name of a backup is fetched before.
    let (attributes, handle, _) = try whenHere {
      try library.create(parent, Array(name.utf8), mode: 0o644, flags: O_WRONLY, caller)
    }
    _ = try library.setAttributes(attributes.ino, .init(size: 0), handle: handle, caller)
    try write(Array(text.utf8), to: handle)
    try library.flush(handle)
    try library.release(handle)
    for copy in since.keys { since[copy]?.insert(text) }
  }

  private func read(_ body: (Int64, UnsafeMutableRawBufferPointer) throws -> Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try body(Int64(bytes.count), $0) }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  func text(_ ino: Int64) throws -> String {
    let handle = try library.open(ino, flags: O_RDONLY, other)
    defer { try? library.release(handle) }
    return String(
      decoding: try read { offset, buffer in try whenHere { try library.read(handle, at: offset, into: buffer) } },
      as: UTF8.self)
  }

  // MARK: - What is here

  /// What people see, by path, as ``SimulatedTree/shown()`` has it; what never travels is left out.
  func shown() throws -> [String: String] {
    var shown: [String: String] = [:]
    var open: [(path: String, ino: Int64)] = [("", try documents)]
    while let folder = open.popLast() {
      for entry in try library.list(folder.ino, after: 0, limit: 10_000, other) {
        let path = folder.path + String(decoding: entry.name, as: UTF8.self)
        let (item, isKnown) = try library.locked { () -> (LocalItem?, Bool) in
          guard let replica = try library.read({ try $0.replica(account) }),
            let id = try library.item(of: library.inode(entry.ino))?.uuid
          else { return (nil, false) }
          var tree = try ReplicaTree(library, replica)
          return (try tree.local(WireID(id)), try tree.base(WireID(id)) != nil)
        }
        guard let item else { throw Broken(description: "\(path) is no item") }
        // What became an editor's backup after it was sent is known, too.
        if item.readiness == .never, !isKnown { continue }
        if item.kind == .folder { open.append((path + "/", entry.ino)) }
        let contents = try item.version.map { "\($0) \(try text(entry.ino))" } ?? ""
        shown[path] =
          "\(item.item) \(item.kind) \(String(item.mode, radix: 8)) \(item.kind == .folder ? 0 : item.mtime) "
          + "\(item.target.map { String(decoding: $0, as: UTF8.self) } ?? "") "
          + "\(item.attributes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.count)" }) \(contents)"
      }
    }
    return shown
  }

  /// What there was at a time, by path.
  func past(at time: Timestamp) throws -> [String: (item: WireID, what: String)] {
    var past: [String: (item: WireID, what: String)] = [:]
    let top = try documents
    var open = [(path: "", ino: top)]
    while let folder = open.popLast() {
      for entry in try library.pastEntries(of: folder.ino, below: top, at: time, other) {
        guard let item = try library.locked({ try library.read { try $0.item(entry.item) } }) else {
          throw Broken(description: "\(name): an item of \(time) is gone")
        }
        let path = folder.path + String(decoding: entry.name, as: UTF8.self)
        let (kind, contents): (SheafWire.ItemKind, String)
        switch entry.kind {
        case .folder(let ino):
          (kind, contents) = (.folder, "")
          open.append((path + "/", ino))
        case .symbolicLink(let ino):
          (kind, contents) = (.symlink, String(decoding: try library.pastLink(ino, other).target, as: UTF8.self))
        case .document(let id, let version):
          let row = try library.locked { try library.read { try $0.version(id, version) } }
          (kind, contents) = (.document, try row.map { try text(of: $0.content) } ?? "")
        }
        if past.updateValue((WireID(item.uuid), "\(kind) \(contents)"), forKey: path) != nil {
          throw Broken(description: "\(name): two items had the name \(path) at \(time)")
        }
      }
    }
    return past
  }

  /// The contents of all versions, of what was deleted too.
  func texts() throws -> Set<String> {
    var texts: Set<String> = []
    let versions = try library.store.snapshot { transaction in
      var versions: [StoredContent] = []
      try transaction.versionContents { _, content in if content.absentLength == 0 { versions.append(content) } }
      return versions
    }
    for content in versions { texts.insert(try text(of: content)) }
    return texts
  }
}
