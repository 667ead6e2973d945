import Glibc
import SheafLibrary
import SheafModel

/// What commands, clients of the API and mounts do, once each. Errors are as good as answers, if they are Sheaf's.
struct Actions {
  let path: String

  /// In the midst of the template's life, and at its end.
  private static let times = [1_700_000_400, 1_700_100_000].map { Timestamp(seconds: $0) }

  /// Does one thing.
  @discardableResult
  private func `do`<Value>(_ name: String, _ body: () throws -> Value) -> Value? {
    say(name)
    do {
      return try body()
    } catch is SheafError {
      return nil
    } catch {
      say("error \(name): \(error)")
      return nil
    }
  }

  func all() {
    guard let library = `do`("open", { try Library.open(LibraryLocation(path: path)) }) else { return }
    let accounts = `do`("accounts") { try library.accounts() } ?? []
    let found = look(at: library, accounts)
    `do`("status") { try library.counts() }
    `do`("check") { try library.check { _ in } }
    change(library, accounts, found)
    replicas(of: library)
    `do`("compact") { try library.compact { _ in } }
    `do`("backup") { try library.backup(to: path + "-backup") { _ in } }
    `do`("upkeep") { library.keepUp() }
    `do`("close") { try library.close() }
    `do`("opening again") { try Library.open(LibraryLocation(path: path)).close() }
  }

  /// What goes on with a hub, as far as one is not needed.
  private func replicas(of library: Library) {
    for replica in `do`("replicas", { try library.replicas() }) ?? [] {
      let account = replica.account
      for _ in 0..<8 {
        if let (number, step) = `do`("step", { try library.step(of: account) }) ?? nil {
          `do`("make together") {
            _ = try library.makeTogether(of: account) {
              $0.size < 1 << 16 ? [UInt8](repeating: 0, count: Int($0.size)) : nil
            }
          }
          `do`("contents") { _ = try library.needsContents(step, of: account) }
          `do`("carry out") { _ = try library.carryOut(number, step, of: account, contents: nil) }
        }
        `do`("plan") { _ = try library.plan(account) }
      }
      for each in `do`("sends", { try library.sends(of: account, limit: 64) }) ?? [] {
        guard let version = each.send.version else { continue }
        `do`("version") { _ = try library.versionReader(version.id, ofItem: each.send.item, of: account) }
      }
      `do`("counts") { _ = try library.replicaCounts(account) }
      `do`("listing anew") { try library.noteListed([], begins: true, of: account) }
      `do`("reread") { try library.noteAll([], token: "1", of: account) }
      `do`("plan anew") { _ = try library.plan(account) }
      `do`("disconnect") { try library.disconnect(account) }
    }
  }

  /// A place below an account's mount.
  private struct Found {
    let account: AccountHandle
    let path: [UInt8]
    let attributes: Attributes
  }

  // MARK: - Reading

  /// Reads a version, or the current contents where `number` is nil, from the start.
  private func show(_ path: ItemPath, _ number: Int64?, atMost limit: Int64, _ library: Library) throws {
    let reader = try library.versionReader(path, number: number)
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var offset: Int64 = 0
    while offset < limit {
      let count = try buffer.withUnsafeMutableBytes { try library.read(reader, at: offset, into: $0) }
      guard count > 0 else { return }
      offset += Int64(count)
    }
  }

  private func look(at library: Library, _ accounts: [Account]) -> [Found] {
    var found: [Found] = []
    for account in accounts.prefix(4) {
      let handle = account.handle
      `do`("activity") {
        _ = try library.events(after: nil, limit: 1000, for: handle)
        _ = try library.latestEvents(limit: 100, for: handle)
      }
      `do`("notices") { try library.notices(for: handle) }
      `do`("webhooks") { try library.webhooks(of: handle) }
      `do`("deleted") { try library.deleted(handle, below: nil) }
      `do`("deleted trees") { try library.deletedTrees(handle, below: nil, limit: 50) }
      `do`("usage") { try library.usage(handle, of: nil) { _ in } }
      for (deleted, versions) in [(false, false), (true, false), (false, true)] {
        `do`("find") {
          try library.find(handle, in: nil, FindRequest(text: "e", deleted: deleted, versions: versions)) { _ in }
        }
      }
      `do`("extent of the trash") { try library.trashExtent(handle, below: nil, TrashSelection()) { _ in } }
      `do`("shares") { try library.shares(of: handle) }
      `do`("all requests") { try library.accessRequests(for: handle) }
      if let root = `do`("documents", { try library.documents(of: handle) }) {
        walk(library, handle, root, [UInt8]("Documents".utf8), &found)
        walkByPath(library, handle, [UInt8]("Documents".utf8))
      }
      guard let number = `do`("account", { try library.number(of: handle) }) else { continue }
      let owners = `do`("sharing owners") { library.sharedOwners(number) } ?? []
      for owner in owners.prefix(4) {
        for entry in `do`("shared entries", { try library.sharedEntries(number, owner: owner.account) }) ?? [] {
          let path = [UInt8]("Shared/\(owner.handle)/".utf8) + entry.name
          walkByPath(library, handle, path)
          if let attributes = `do`("shared entry", { try library.attributes(entry.ino, .library) }) {
            found.append(Found(account: handle, path: path, attributes: attributes))
            if attributes.mode & S_IFMT == S_IFDIR { walk(library, handle, entry.ino, path, &found) }
          }
        }
      }
    }
    `do`("all activity") { try library.events(after: 0, limit: 1000, for: nil) }
    for place in found { read(library, place) }
    return found
  }

  /// Goes through a folder as find(1) does.
  private func walk(
    _ library: Library, _ account: AccountHandle, _ root: Int64, _ path: [UInt8], _ found: inout [Found]
  ) {
    var seen: Set<Int64> = [root]
    var waiting = [(root, path)]
    while let (folder, path) = waiting.popLast(), found.count < 200 {
      var cookie: Int64 = 0
      var pages = 0
      while pages < 20, let page = `do`("list", { try library.list(folder, after: cookie, limit: 10, .library) }),
        let last = page.last
      {
        for entry in page {
          let place = path + [UInt8(ascii: "/")] + entry.name
          `do`("lookup") { try library.lookup(folder, entry.name, .library) }
          guard let attributes = entry.attributes else { continue }
          found.append(Found(account: account, path: place, attributes: attributes))
          if attributes.mode & S_IFMT == S_IFDIR, seen.insert(attributes.ino).inserted {
            waiting.append((attributes.ino, place))
          }
        }
        cookie = last.cookie
        pages += 1
      }
      `do`("parent") { try library.parent(of: folder, .library) }
      for time in Self.times { walkPast(library, folder, at: time) }
      for entry in `do`("trash", { try library.trash(of: folder, .library) }) ?? [] {
        `do`("in the trash") { try library.trashEntry(of: folder, entry.name, .library) }
        `do`("place in the trash") { try library.trashPlace(of: entry.attributes.ino, .library) }
      }
      for versions in `do`(".versions", { try library.versionFolders(of: folder, .library) }) ?? [] {
        `do`(".versions/NAME") { try library.versionFolder(of: folder, versions.name, .library) }
        for file in `do`("version files", { try library.versionFiles(of: versions.item, .library) }) ?? [] {
          `do`("a version") {
            let reader = try library.openVersion(of: file.item, number: file.number, .library)
            for offset in [0, file.size / 2, file.size] {
              try readSome { try library.read(reader, at: offset, into: $0) }
            }
            _ = try library.seek(reader, 0, hole: true)
          }
        }
      }
    }
  }

  /// Folders in each other, of which the template has fewer.
  private static let depth = 64

  /// Goes from folder to folder by paths, as `sheaf send-copy` does.
  private func walkByPath(_ library: Library, _ account: AccountHandle, _ top: [UInt8]) {
    var waiting = [(path: top, depth: 0)]
    var count = 0
    while let (path, depth) = waiting.popLast(), count < 200 {
      count += 1
      guard depth < Self.depth else { return say("error children: goes on for ever") }
      guard let item = try? ItemPath(account: account, bytes: path) else { continue }
      for child in `do`("children by path", { try library.children(item) }) ?? [] where child.kind == "folder" {
        guard let name = PercentCoding.decode(child.name.utf8) else { continue }
        waiting.append((path + [UInt8(ascii: "/")] + name, depth + 1))
      }
    }
  }

  /// Goes from name to name in a folder as it was.
  private func walkPast(_ library: Library, _ top: Int64, at time: Timestamp) {
    `do`("a folder as it was") { try library.pastFolder(top, at: time, .library) }
    var waiting = [(folder: top, depth: 0)]
    var count = 0
    while let (folder, depth) = waiting.popLast(), count < 200 {
      count += 1
      guard depth < Self.depth else { return say("error a folder as it was: goes on for ever") }
      let entries = `do`("names as they were") {
        try library.pastEntries(of: folder, below: top, at: time, .library)
      }
      for entry in entries ?? [] {
        `do`("a name as it was") { try library.pastEntry(folder, entry.name, below: top, at: time, .library) }
        switch entry.kind {
        case .folder(let ino): waiting.append((ino, depth + 1))
        case .symbolicLink(let ino): `do`("a link as it was") { try library.pastLink(ino, .library) }
        case .document(let item, let number):
          `do`("a version as it was") { try library.versionFile(of: item, number: number, .library) }
        }
      }
    }
  }

  private func readSome(_ read: (UnsafeMutableRawBufferPointer) throws -> Int) throws {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    _ = try buffer.withUnsafeMutableBytes { try read($0) }
  }

  private func read(_ library: Library, _ place: Found) {
    let ino = place.attributes.ino
    let size = place.attributes.size
    `do`("attributes") { try library.attributes(ino, .library) }
    for name in `do`("listxattr", { try library.xattrNames(ino, listsComputed: true, .library) }) ?? [] {
      `do`("getxattr") { try library.xattr(ino, name, .library) }
    }
    switch place.attributes.mode & S_IFMT {
    case S_IFLNK: `do`("readlink") { try library.readLink(ino, .library) }
    case S_IFREG:
      `do`("read") {
        let handle = try library.open(ino, flags: O_RDONLY, .library)
        for offset in [0, size / 2, max(0, size - 1), size] {
          try readSome { try library.read(handle, at: offset, into: $0) }
        }
        for hole in [true, false] { _ = try? library.seek(handle, 0, hole: hole) }
        try library.release(handle)
      }
    default: break
    }
    guard let path = try? ItemPath(account: place.account, bytes: place.path) else { return }
    `do`("status of an item") { try library.itemStatus(path) }
    `do`("versions") { try library.versions(path) }
    `do`("show") {
      try show(path, nil, atMost: 4 << 20, library)
    }
    `do`("children") { try library.children(path) }
    `do`("share of an item") { try library.share(of: path) }
    `do`("participants") { try library.participants(path) }
    `do`("requests") { try library.accessRequests(path) }
    `do`("activity of an item") {
      _ = try library.latestEvents(limit: 100, for: place.account, in: try library.eventScope(path))
    }
  }

  // MARK: - Changing

  private func change(_ library: Library, _ accounts: [Account], _ found: [Found]) {
    for place in found.prefix(30) { change(library, place) }
    for account in accounts.prefix(4) {
      for item in `do`("deleted", { try library.deleted(account.handle, below: nil) }) ?? [] {
        guard let path = try? ItemPath(account: account.handle, item.path) else { continue }
        `do`("recover") { try library.recover(path, id: item.id) { _ in } }
      }
      `do`("clear notices") { try library.clearNotices(for: account.handle, through: .max) }
      for webhook in `do`("webhooks", { try library.webhooks(of: account.handle) }) ?? [] {
        `do`("remove a webhook") { try library.removeWebhook(webhook.id, of: account.handle) }
      }
    }
    for account in accounts.prefix(1) {
      `do`("empty the trash") {
        try library.emptyTrash(account.handle, below: nil, TrashSelection(largerThan: 3)) { _ in }
      }
    }
    // From the end: what is in a folder goes before the folder.
    for (index, place) in found.reversed().enumerated() {
      guard let path = try? ItemPath(account: place.account, bytes: place.path) else { continue }
      if index.isMultiple(of: 5) {
        `do`("purge") { try library.purge(path, version: nil) }
      } else {
        `do`("remove") { try remove(library, place) }
      }
    }
    for account in accounts.prefix(4) {
      for item in `do`("deleted", { try library.deleted(account.handle, below: nil) }) ?? [] {
        guard let path = try? ItemPath(account: account.handle, item.path) else { continue }
        `do`("purge what is deleted") { try library.purge(path, version: nil) }
      }
    }
    if let last = accounts.last { `do`("remove an account") { try library.removeAccount(last.handle) } }
    `do`("add an account") { try library.addAccount(AccountHandle("new@example.com"), name: nil) }
  }

  private func remove(_ library: Library, _ place: Found) throws {
    let names = place.path.split(separator: UInt8(ascii: "/")).map(Array.init)
    guard names.first == Array("Documents".utf8), names.count > 1 else { return }
    var folder = try library.documents(of: place.account)
    for name in names.dropFirst().dropLast() { folder = try library.lookup(folder, name, .library).ino }
    if place.attributes.mode & S_IFMT == S_IFDIR {
      _ = try library.rmdir(folder, names[names.count - 1], .library)
    } else {
      try library.unlink(folder, names[names.count - 1], .library)
    }
  }

  private func change(_ library: Library, _ place: Found) {
    let ino = place.attributes.ino
    guard let path = try? ItemPath(account: place.account, bytes: place.path) else { return }
    `do`("chmod and touch") {
      let now = Library.AttributeChange(mode: 0o700, atime: .now, mtime: .now)
      return try library.setAttributes(ino, now, handle: nil, .library)
    }
    `do`("setxattr") { try library.setXattr(ino, [UInt8]("user.x".utf8), [1], .set, .library) }
    switch place.attributes.mode & S_IFMT {
    case S_IFREG:
      `do`("write") {
        let handle = try library.open(ino, flags: O_RDWR, .library)
        defer { `do`("release") { try library.release(handle) } }
        try [1, 2, 3].withUnsafeBytes { try library.write(handle, at: 1, $0) }
        try [4, 5].withUnsafeBytes { try library.write(handle, at: 0, $0, appends: true) }
        _ = try? library.allocate(handle, 0..<5, .punchHole)
        _ = try? library.copy(from: handle, at: 0, to: handle, at: 1 << 20, count: 1 << 20)
        _ = try library.setAttributes(ino, .init(size: 7), handle: handle, .library)
        try library.flush(handle)
      }
      `do`("label") { try library.label(path, name: "label", version: nil) }
      `do`("restore") { try library.restore(path, version: 1) }
      `do`("resolve") { try library.resolveConflict(path) }
      `do`("purge a version") { try library.purge(path, version: 1) }
      `do`("show a version") { try show(path, 2, atMost: 1 << 20, library) }
    case S_IFDIR:
      `do`("retention") { try library.retention(path) }
      `do`("retain") {
        try library.retain(path, RetentionChange(keepDeleted: 86_400, keepVersions: nil, isDefault: false))
      }
      for by in [nil, try? AccountHandle("alice@example.com")] {
        for dryRun in [true, false] {
          `do`("restore a folder") {
            try library.restoreFolder(
              path, FolderRestoreRequest(time: Self.times[0], by: by, dryRun: dryRun)
            ) { _ in }
          }
        }
      }
      `do`("make") { try library.make(.folder, ino, [UInt8]("made".utf8), mode: 0o755, .library) }
      `do`("rename") {
        _ = try library.rename(ino, [UInt8]("made".utf8), to: ino, [UInt8]("moved".utf8), .replace, .library)
      }
      if let folder = `do`("above", { try library.parent(of: ino, .library) }), case .folder(let above) = folder,
        let name = place.path.split(separator: UInt8(ascii: "/")).last
      {
        `do`("move into itself") {
          try library.rename(above, Array(name), to: ino, Array(name), .replace, .library)
        }
      }
    default: break
    }
    `do`("comment") { try library.comment(path, text: "for @bob@example.com") }
    share(library, path)
  }

  private func share(_ library: Library, _ path: ItemPath) {
    var change = ShareChange()
    (change.title, change.allowInvites) = ("Title", true)
    guard let bob = try? AccountHandle("bob@example.com"), let dave = try? AccountHandle("dave@example.com"),
      let share = `do`("share", { try library.share(path, change) })
    else { return }
    `do`("add") { try library.addParticipant(path, ParticipantChange(handle: bob, permission: .readWrite)) }
    `do`("inspect") { try library.inspect(share.url, as: bob) }
    `do`("accept") { try library.accept(share.url, as: bob) }
    `do`("set") { try library.setParticipant(path, ParticipantChange(handle: bob, permission: .readOnly)) }
    `do`("invite") { try library.inviteOnce(path, permission: nil) }
    `do`("answer") { try library.answer(path, RequestAnswer(handle: dave, answer: .approve)) }
    `do`("remove") { try library.removeParticipant(path, bob) }
    `do`("leave") { try library.leave(path) }
    `do`("revoke") { try library.revokeOneTimeLinks(path) }
    `do`("unshare") { try library.unshare(path) }
  }
}
