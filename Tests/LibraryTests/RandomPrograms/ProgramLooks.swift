import Glibc
import SheafModel
import SheafStore

@testable import SheafLibrary

/// What accounts see and read in random programs.
extension ProgramRun {
  /// Has an account read all that it sees.
  func look(_ step: ProgramStep) throws {
    let account = world.account(step.actor)
    let (library, caller) = (world.library, world.caller(step.actor))
    let others = world.accounts.values.filter { $0 != account }.sorted()
    for entry in try others.flatMap({ try library.sharedEntries(account, owner: $0) }) {
      var folders = [entry.ino]
      if try library.attributes(entry.ino, caller).mode & S_IFMT != S_IFDIR {
        folders = []
        if let document = before.item(of: entry.ino) { try lookAtVersions(document.row.id, step, caller) }
      }
      while let folder = folders.popLast() {
        for listed in try library.list(folder, after: 0, limit: 1000, caller)
        where listed.attributes.map({ $0.mode & S_IFMT == S_IFDIR }) ?? false {
          folders.append(listed.ino)
        }
        for document in try library.versionFolders(of: folder, caller) {
          try lookAtVersions(document.item, step, caller)
        }
        try lookAtTrash(of: folder, step, caller)
        for milliseconds in Self.spans { try lookBack(at: folder, milliseconds, step, caller) }
      }
    }
    for deleted in try library.deleted(step.actor.person.handle, below: nil) where deleted.path.hasPrefix("Shared/") {
      try sights.check(account, sees: deleted.id, as: "the deleted", before)
    }
    for event in try library.events(after: nil, limit: 10_000, for: step.actor.person.handle).events
    where event.data.share != nil {
      try sights.check(account, sees: event.subject, as: "the subject of \(event.type.rawValue)", before)
      for item in event.data.contents ?? [] {
        try sights.check(account, sees: item.id, as: "part of \(event.type.rawValue)", before)
      }
    }
  }

  /// Has an account open a version, which it reads from then on.
  func peek(_ step: ProgramStep) throws {
    guard let document = before.item(of: try world.ino(step.first)), let number = Int64(step.second) else { return }
    let reader = try world.library.openVersion(of: document.row.id, number: number, world.caller(step.actor))
    let text = try world.read(reader)
    guard document.texts[number] == text else {
      throw Violation(
        rule: "a version reads as it is", what: "'\(step)' reads \(text), not \(document.texts[number] ?? "nothing")")
    }
    let account = world.account(step.actor)
    if document.row.owner != account { try sights.check(account, reads: text, in: "\(step)") }
    peeks.append(Peek(reader: reader, text: text, account: account, item: document.row.id))
  }

  /// How long ago the past is that is looked at, in milliseconds.
  private static let spans: [Int64] = [4, 50, 500, 2500, 20_000, 70_000]

  /// Reads all that `.deleted` of a folder shows.
  private func lookAtTrash(of folder: Int64, _ step: ProgramStep, _ caller: Caller) throws {
    var folders = [folder]
    while let folder = folders.popLast() {
      for entry in try seen({ try world.library.trash(of: folder, caller) }) ?? [] {
        let ino = entry.attributes.ino
        if let id = before.item(of: ino)?.row.uuid.text {
          try sights.check(world.account(step.actor), sees: id, as: "what .deleted shows", before)
        }
        guard entry.attributes.mode & S_IFMT == S_IFREG else {
          folders.append(ino)
          continue
        }
        guard let reader = try seen({ try world.library.openDeleted(ino, caller) }) else { continue }
        try sights.check(world.account(step.actor), reads: world.read(reader), in: ".deleted, inode \(ino)")
      }
    }
  }

  /// Reads all that a folder shows of a time.
  private func lookBack(at folder: Int64, _ milliseconds: Int64, _ step: ProgramStep, _ caller: Caller) throws {
    let time = Self.earlier(world.clock.now, milliseconds: milliseconds)
    let top = folder
    var folders = [top]
    var passed: Set<Int64> = []
    while let folder = folders.popLast() {
      guard passed.insert(folder).inserted else { continue }
      for entry in try seen({ try world.library.pastEntries(of: folder, below: top, at: time, caller) }) ?? [] {
        if let id = before.items[entry.item]?.row.uuid.text {
          try sights.check(
            world.account(step.actor), sees: id, as: "what was there \(milliseconds) ms ago", before)
        }
        switch entry.kind {
        case .folder(let ino): folders.append(ino)
        case .document(let item, let version) where version > 0:
          let opened = try seen { try world.library.openVersion(of: item, number: version, caller) }
          guard let reader = opened else { continue }
          try sights.check(
            world.account(step.actor), reads: world.read(reader),
            in: "version \(version) of item \(item), \(milliseconds) ms ago")
        case .document, .symbolicLink: break
        }
      }
    }
  }

  /// What there is to see; nil where nothing is, or nothing for this account.
  private func seen<Value>(_ look: () throws -> Value) throws -> Value? {
    do {
      return try look()
    } catch let error as SheafError where [.notFound, .accessDenied].contains(error.kind) {
      return nil
    }
  }

  private func lookAtVersions(_ item: Int64, _ step: ProgramStep, _ caller: Caller) throws {
    for file in try seen({ try world.library.versionFiles(of: item, caller) }) ?? [] {
      let reader = try world.library.openVersion(of: item, number: file.number, caller)
      try sights.check(
        world.account(step.actor), reads: world.read(reader),
        in: "version \(file.number) of \(before.items[item]?.path ?? "item \(item)")")
    }
  }
}
